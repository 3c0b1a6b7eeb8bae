package control

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// network is the nth of many networks strangers ask from.
func network(n int) netip.Addr { return netip.AddrFrom4([4]byte{198, byte(n >> 8), byte(n), 7}) }

// Weakness: anybody may ask for mail at anybody's address.
// Attack: strangers in many networks ask for maya's all day long, until the
// address has had its mails of the day.
// Checked: the browser she signed in with before still gets its mails, within
// limits of its own; what is no proof of hers is none.
func TestStrangersCannotSpendAKnownBrowsersMails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.owner()
	ask := func(from Browser) error {
		_, err := b.SignIn.Begin(t.Context(), "maya@example.com", from, "")
		return err
	}
	known := b.SignIn.Remember("", "maya@example.com")
	for n := range 20 {
		programs.Must(t, ask(Browser{Client: network(n)}))
		b.clock.Add(4 * time.Minute)
	}
	wantRefusal(t, ask(Browser{Client: network(99)}), controlapi.CodeTooMany)
	wantRefusal(t, ask(Browser{Client: home}), controlapi.CodeTooMany)
	for name, proof := range map[string]string{
		"another address's":  b.SignIn.Remember("", "bob@example.com"),
		"a changed one":      "A" + known,
		"a cut one":          known[:len(known)-1],
		"one of other seals": b.Keys.Seal(sealKnown+"x", "device"),
		"an empty one":       b.Keys.Seal(sealKnown, ""),
		"a hostile one":      strings.Repeat(". ", 50_000),
	} {
		if err := ask(Browser{Client: home, Known: proof}); !IsRefusal(err, controlapi.CodeTooMany) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range 5 {
		if err := ask(Browser{Client: home, Known: known}); err != nil {
			t.Fatalf("the known browser: %v", err)
		}
	}
	wantRefusal(t, ask(Browser{Client: home, Known: known}), controlapi.CodeTooMany)
	b.clock.Add(15 * time.Minute)
	if err := ask(Browser{Client: home, Known: known}); err != nil {
		t.Errorf("after the wait: %v", err)
	}
	// Another browser of hers is not held up by this one.
	if err := ask(Browser{Client: home, Known: b.SignIn.Remember("", "maya@example.com")}); err != nil {
		t.Errorf("another known browser: %v", err)
	}
	b.clock.Add(180 * 24 * time.Hour)
	for n := range 20 {
		programs.Must(t, ask(Browser{Client: network(n)}))
		b.clock.Add(4 * time.Minute)
	}
	wantRefusal(t, ask(Browser{Client: home, Known: known}), controlapi.CodeTooMany)
}

// The mail of a known browser is written, too, by what is stored: the strangers'
// mails were written before a restart.
func TestKnownBrowserAfterARestart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.owner()
	b.run()
	known := b.SignIn.Remember("", "maya@example.com")
	for n := range 5 {
		ok[string](t)(b.SignIn.Begin(t.Context(), "maya@example.com", Browser{Client: network(n)}, ""))
	}
	b.until("the budget to be written", func() bool { return b.spentOn("maya@example.com") == 5 })
	again := b.node()
	_, err := again.SignIn.Begin(t.Context(), "maya@example.com", Browser{Client: home}, "")
	wantRefusal(t, err, controlapi.CodeTooMany)
	ok[string](t)(again.SignIn.Begin(t.Context(), "maya@example.com", Browser{Client: home, Known: known}, ""))

	b.clock.Add(time.Second)
	ok[string](t)(b.SignIn.Begin(t.Context(), "maya@example.com", Browser{Client: home, Known: known}, ""))
	b.mailed("maya@example.com", 6)
	if n := b.spentOn("maya@example.com"); n != 5 {
		t.Errorf("the known browser spent from the strangers' budget: %d", n)
	}
}

// One network alone leaves half of an address's day to the others.
func TestOneNetworkCannotSpendTheDay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.owner()
	ask := func(client netip.Addr) error {
		_, err := b.SignIn.Begin(t.Context(), "maya@example.com", Browser{Client: client}, "")
		return err
	}
	// A site has 65,536 networks of IPv6, and a customer of a data centre often
	// many addresses in a row.
	stranger := func(n int) netip.Addr {
		a := netip.MustParseAddr("2001:db8:1::1").As16()
		a[7] = byte(n)
		return netip.AddrFrom16(a)
	}
	for n := range 10 {
		programs.Must(t, ask(stranger(n)))
		b.clock.Add(8 * time.Minute)
	}
	err := ask(stranger(10))
	wantRefusal(t, err, controlapi.CodeTooMany)
	if !strings.Contains(err.Error(), "on its account page") {
		t.Errorf("no way out is told: %v", err)
	}
	if err := ask(home); err != nil {
		t.Errorf("her own network: %v", err)
	}
}

// Weakness: a stranger with six addresses of one network spends all that an address has for
// 15 minutes, and one in two networks all it has for the day.
// Checked: one network gets two mails; whoever used a mail where they are now, by the link,
// the code or as an invitation, is not held up by strangers elsewhere; and an answer tells nobody
// else of it.
func TestOneNetworkHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	const maya = "maya@example.com"
	ask := func(b *bench, client string) error {
		_, err := b.SignIn.Begin(t.Context(), maya, Browser{Client: netip.MustParseAddr(client)}, "")
		return err
	}
	t.Run("for 15 minutes", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.owner()
		for n := range 6 {
			if err := ask(b, fmt.Sprintf("198.51.100.%d", n)); (err == nil) != (n < 2) {
				t.Errorf("request %d of one network: %v", n, err)
			}
		}
		if err := ask(b, "192.0.2.7"); err != nil {
			t.Errorf("she herself: %v", err)
		}
	})
	t.Run("for the day", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		e := b.owner()
		b.run()
		b.apps(e, "app1")
		_, link, _ := b.begin(maya, 1)
		ok[SignedIn](t)(b.SignIn.WithLink(t.Context(), link, "", netip.MustParseAddr("192.0.2.7")))
		browser, _, code := b.begin(maya, 2)
		ok[SignedIn](t)(b.SignIn.WithCode(t.Context(), browser, code, netip.MustParseAddr("2001:db8::7")))
		b.joined(e.Computer.ID, "bob@example.com", "app1")
		b.clock.Add(24 * time.Hour)
		again := b.node() // what it is familiar with is stored
		for n := range 20 {
			programs.Must(t, ask(b, fmt.Sprintf("203.0.%d.9", n%2)))
			b.until("the budget to be written, by the clock as it is", func() bool { return b.spentLast(budgetRecipient.of(maya)) == b.clock.Now().UnixMilli() })
			b.clock.Add(8 * time.Minute)
		}
		for client, want := range map[string]bool{
			"192.0.2.7": true, "::ffff:192.0.2.7": true, "2001:db8::9": true,
			"192.0.2.8": false, "2001:db8:0:1::7": false, "203.0.0.9": false,
		} {
			if err := ask(b, client); (err == nil) != want {
				t.Errorf("%s: %v", client, err)
			}
		}
		_, err := again.SignIn.Begin(t.Context(), maya, Browser{Client: home}, "")
		if err != nil {
			t.Errorf("after a restart: %v", err)
		}
		if is := ok[bool](t)(b.isFamiliar("bob@example.com", home)); !is {
			t.Error("an invitation that was taken does not count")
		}
		b.clock.Add(KnownLife)
		if is := ok[bool](t)(b.isFamiliar(maya, home)); is {
			t.Error("half a year later the network is familiar")
		}
	})
}

// spentLast is when a budget was spent last, in unix milliseconds.
func (b *bench) spentLast(s subject) (at int64) {
	b.t.Helper()
	if w := rowAt[window](b, s.key); len(w) > 0 {
		at = w[len(w)-1]
	}
	return at
}

func (b *bench) isFamiliar(email string, client netip.Addr) (bool, error) {
	return viewed(b.t.Context(), b.core, func(tx *txn) (bool, error) { return tx.familiar(email, clientKey(client)), nil })
}

// Sixteen networks are familiar to an address, those that signed in last, and none when
// its account is gone.
func TestFamiliarNetworksAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const bob = "bob@example.com"
	ok[Account](t)(b.Accounts.Ensure(t.Context(), bob))
	for n := range maxFamiliar + 4 {
		b.clock.Add(time.Second)
		b.change(func(tx *txn) { tx.noteFamiliar(bob, network(n)) })
	}
	for n := range maxFamiliar + 4 {
		if is := ok[bool](t)(b.isFamiliar(bob, network(n))); is != (n >= 4) {
			t.Errorf("network %d: %t", n, is)
		}
	}
	if err := b.Accounts.Remove(t.Context(), bob); err != nil || b.rows("familiar/") != 0 {
		t.Errorf("after the account: %v, %d rows", err, b.rows("familiar/"))
	}
}

// A browser is known with the addresses it used last, and stays the same one.
func TestRemember(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	emails := []string{"a@example.com", "b@example.com", "c@example.com", "d@example.com", "e@example.com"}
	known := ""
	for _, email := range emails {
		b.clock.Add(time.Hour)
		known = b.SignIn.Remember(known, email)
	}
	if strings.Contains(known, "example") || len(known) > 1000 {
		t.Errorf("the proof is %q", known)
	}
	device, isKnown := b.SignIn.knownFor(known, "e@example.com")
	if !isKnown || device == "" {
		t.Fatal("the last address is not known")
	}
	for n, email := range emails {
		if got, is := b.SignIn.knownFor(known, email); is != (n > 0) || is && got != device {
			t.Errorf("%s: %q %t", email, got, is)
		}
	}
	again := b.SignIn.Remember(known, "b@example.com")
	if got, is := b.SignIn.knownFor(again, "c@example.com"); !is || got != device {
		t.Errorf("signing in again: %q %t", got, is)
	}
	other := newBench(t)
	if _, is := other.SignIn.knownFor(known, "e@example.com"); is {
		t.Error("another control plane takes the proof")
	}
}

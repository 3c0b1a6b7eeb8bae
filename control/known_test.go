package control

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"porchlight/control/controlapi"
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
		if err := ask(Browser{Client: network(n)}); err != nil {
			t.Fatal(err)
		}
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
		if err := ask(Browser{Client: network(n)}); err != nil {
			t.Fatal(err)
		}
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
	again := ok[*Service](t)(New(b.cfg))
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
		if err := ask(stranger(n)); err != nil {
			t.Fatal(err)
		}
		b.clock.Add(4 * time.Minute)
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

package control

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/test/programs"
)

func TestEnsureComputerAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.owner()
	want := controlapi.Computer{ID: first.Computer.ID, Name: "maya", Host: "maya.localhost:8443", URL: "https://maya.localhost:8443"}
	if first.Computer != want {
		t.Errorf("the computer is %+v", first.Computer)
	}
	second := b.owner()
	if second.Computer != first.Computer || second.AccountID != first.AccountID || second.Credential == first.Credential {
		t.Errorf("the second enrolment is %+v after %+v", second, first)
	}
	_, err := b.Agents.Authenticate(t.Context(), first.Credential)
	wantRefusal(t, err, controlapi.CodeUnauthorized)
	if got := ok[controlapi.Computer](t)(b.Agents.Authenticate(t.Context(), second.Credential)); got != want {
		t.Errorf("authenticated as %+v", got)
	}
	for _, credential := range []string{"", "x", second.Credential + "x", strings.Repeat("A", 43)} {
		_, err := b.Agents.Authenticate(t.Context(), credential)
		wantRefusal(t, err, controlapi.CodeUnauthorized)
	}
	if n := b.rows("credential/"); n != 1 {
		t.Errorf("%d credentials are stored", n)
	}
}

func TestShortNames(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.owner()
	for _, name := range []string{"", "www", "portal", "control", "Maya", "a.b", "ä", strings.Repeat("a", 64), "a b", "a\n"} {
		_, err := b.Computers.Ensure(t.Context(), "maya@example.com", name)
		if !IsRefusal(err, controlapi.CodeInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	_, err := b.Computers.Ensure(t.Context(), "bob@example.com", "maya")
	wantRefusal(t, err, controlapi.CodeForbidden)
	if _, err := b.Accounts.ByEmail(t.Context(), "bob@example.com"); !IsRefusal(err, controlapi.CodeNotFound) {
		t.Errorf("a refused enrolment left an account: %v", err)
	}
}

func TestHostsAt443CarryNoPort(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.Domain, c.AuthHost, c.PublicPort = "porch.example", "control.example.net", 443 })
	e := b.owner()
	if e.Computer.URL != "https://maya.porch.example" || b.AuthURL() != "https://control.example.net" || b.Local() {
		t.Errorf("got %+v at %s", e.Computer, b.AuthURL())
	}
}

// Weakness: labels are shown to people by this service, and come from an agent
// that somebody else may have changed. Checked: what a person could not read as
// it is, is refused. What agents take is taken.
func TestPutAppsRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	good := controlapi.App{ID: "a", Name: "a", Label: "A"}
	many := slices.Repeat([]controlapi.App{good}, MaxApps+1)
	for name, apps := range map[string][]controlapi.App{
		"bad id":        {{ID: "a/b", Name: "a", Label: "A"}},
		"bad name":      {{ID: "a", Name: "A", Label: "A"}},
		"reserved name": {{ID: "a", Name: "www", Label: "A"}},
		"no label":      {{ID: "a", Name: "a"}},
		"control label": {{ID: "a", Name: "a", Label: "A\r\nB"}},
		"C1 control":    {{ID: "a", Name: "a", Label: "A\u0085B"}},
		"line end":      {{ID: "a", Name: "a", Label: "A\u2028B"}},
		"bidi override": {{ID: "a", Name: "a", Label: "\u202eseton"}},
		"bidi isolate":  {{ID: "a", Name: "a", Label: "\u2066A"}},
		"bidi mark":     {{ID: "a", Name: "a", Label: "A\u200f"}},
		"nothing seen":  {{ID: "a", Name: "a", Label: "\u200b\u200d"}},
		"blank label":   {{ID: "a", Name: "a", Label: " "}},
		"space around":  {{ID: "a", Name: "a", Label: " A"}},
		"not UTF-8":     {{ID: "a", Name: "a", Label: "A\xff"}},
		"id twice":      {good, {ID: "a", Name: "b", Label: "B"}},
		"name twice":    {good, {ID: "b", Name: "a", Label: "B"}},
		"too many":      many,
	} {
		if err := b.Agents.PutApps(t.Context(), e.Computer.ID, controlapi.Apps{Apps: apps}); !IsRefusal(err, controlapi.CodeInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i, label := range []string{"A", "Photos & more", "写真", "صور", "👩‍👩‍👧", "a\u0301", strings.Repeat("é", maxLabel)} {
		if err := b.Agents.PutApps(t.Context(), e.Computer.ID, controlapi.Apps{Apps: []controlapi.App{{ID: "a", Name: "a", Label: label}}}); err != nil {
			t.Errorf("label %d, %q: %v", i, label, err)
		}
	}
}

func TestSessionSlides(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.owner()
	b.run()
	_, link, _ := b.begin("maya@example.com", 1)
	in := ok[SignedIn](t)(b.SignIn.WithLink(t.Context(), link, "", home))
	for day := range 90 {
		b.clock.Add(24 * time.Hour)
		if s := ok[Session](t)(b.Sessions.Of(t.Context(), in.Token)); !s.Renewed {
			t.Fatalf("day %d: not renewed", day)
		}
		if s := ok[Session](t)(b.Sessions.Of(t.Context(), in.Token)); s.Renewed {
			t.Fatalf("day %d: renewed twice", day)
		}
	}
	b.clock.Add(30*24*time.Hour - time.Second)
	ok[Session](t)(b.Sessions.Of(t.Context(), in.Token))
	b.clock.Add(30 * 24 * time.Hour)
	_, err := b.Sessions.Of(t.Context(), in.Token)
	wantRefusal(t, err, controlapi.CodeUnauthorized)
}

func TestSignOut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	b.run()
	var tokens []string
	for n := range 3 {
		_, link, _ := b.begin("maya@example.com", n+1)
		tokens = append(tokens, ok[SignedIn](t)(b.SignIn.WithLink(t.Context(), link, "", home)).Token)
	}
	if list := ok[[]Session](t)(b.Sessions.List(t.Context(), e.AccountID)); len(list) != 3 {
		t.Errorf("the sessions are %+v", list)
	}
	programs.Must(t, b.Sessions.SignOut(t.Context(), tokens[0]))
	_, err := b.Sessions.Of(t.Context(), tokens[0])
	wantRefusal(t, err, controlapi.CodeUnauthorized)
	ok[Session](t)(b.Sessions.Of(t.Context(), tokens[1]))

	watch := b.watch(e.Computer.ID)
	defer watch.unwatch()
	programs.Must(t, b.Sessions.SignOutEverywhere(t.Context(), e.AccountID))
	for _, token := range tokens {
		_, err := b.Sessions.Of(t.Context(), token)
		wantRefusal(t, err, controlapi.CodeUnauthorized)
	}
	if !watch.woken() {
		t.Error("the computer was not told")
	}
	if n := b.rows("session/") + b.rows("account-session/"); n != 0 {
		t.Errorf("%d rows of sessions are left", n)
	}
}

func TestKeysAreKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	again := b.node()
	if !slices.Equal(again.Keys.Public(), b.Keys.Public()) || again.Keys.Instance() != b.Keys.Instance() {
		t.Error("another start made other keys")
	}
	text, found := again.Keys.Unseal("a", b.Keys.Seal("a", "text"))
	if !found || text != "text" {
		t.Errorf("unsealed %q, %t", text, found)
	}
	for _, forged := range []string{"", ".", "x.y", b.Keys.Seal("b", "text"), newBench(t).Keys.Seal("a", "text"), b.Keys.Seal("a", "text") + "A"} {
		if _, found := b.Keys.Unseal("a", forged); found {
			t.Errorf("unsealed %q", forged)
		}
	}
	block, _ := pem.Decode([]byte(b.Keys.Public()[0]))
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if _, isEd := key.(ed25519.PublicKey); err != nil || !isEd {
		t.Errorf("the public key is %T, %v", key, err)
	}
}

func TestParseEmail(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"bob@example.com":          "bob@example.com",
		" Bob.X+tag@Example.COM\n": "bob.x+tag@example.com",
		"bob@bücher.example":       "bob@xn--bcher-kva.example",
		"owner@maya.localhost":     "owner@maya.localhost",
		"bob@senders.example":      "bob@senders.example",
		"senders@maya.example.com": "senders@maya.example.com",
	} {
		if got, err := ParseEmail(in); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "bob", "bob@", "@example.com", "bob@example", "Bob <bob@example.com>", "<bob@example.com>",
		"bob@example.com, eve@example.com", "bob@exam\r\nple.com", "bob\r\nBcc: eve@x.com@example.com",
		`"bob x"@example.com`, "bob@[127.0.0.1]", "bøb@example.com", "bob@example.com.", "bob(hi)@example.com",
		strings.Repeat("a", 65) + "@example.com", "a@" + strings.Repeat("b.", 130) + "com", "bob@exa_mple.com", "bob@ex ample.com",
		"sender-a@senders.maya.example.com", "Bob@Senders.maya.localhost", "bob@senders.example.com", // nobody has these: apps know named senders by them
	} {
		if got, err := ParseEmail(in); !IsRefusal(err, controlapi.CodeInvalid) {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

func FuzzParseEmail(f *testing.F) {
	for _, s := range []string{"bob@example.com", "Bob+x@bücher.example", `"a b"@x.yz`, "a@b\r\n.cd", "<a@b.cd>", "a@xn--bcher-kva.example"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, err := ParseEmail(in)
		if err != nil {
			return
		}
		if again, err := ParseEmail(got); err != nil || again != got {
			t.Fatalf("%q became %q, which became %q, %v", in, got, again, err)
		}
		if strings.ContainsAny(got, "\r\n <>\"(),;:") || len(got) > 254 || got != strings.ToLower(got) {
			t.Fatalf("%q became %q", in, got)
		}
		for i := range len(got) {
			if got[i] >= 0x80 {
				t.Fatalf("%q became %q", in, got)
			}
		}
		if a, err := mail.ParseAddress(got); err != nil || a.Address != got {
			t.Fatalf("%q became %q, which is %v, %v", in, got, a, err)
		}
	})
}

// A computer whose agent holds its sync at another node counts as connected for
// as long as that node would have noted it; where there is no other node, only a
// sync that waits here counts.
func TestConnectedElsewhere(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		b := newBench(t, func(c *Config) { c.SharedStore = shared })
		e := b.owner()
		b.note(e.Computer.ID, b.clock.Now())
		programs.Must(t, b.Feed.Seen.Write(t.Context()))
		connected := func() bool {
			t.Helper()
			own := ok[[]OwnComputer](t)(b.Computers.Own(t.Context(), e.AccountID))
			return len(own) == 1 && own[0].On
		}
		if connected() != shared {
			t.Errorf("seen just now, on a shared store (%t) it is connected: %t", shared, connected())
		}
		b.clock.Add(awayAfter)
		if connected() {
			t.Errorf("on a shared store (%t) it is connected for ever", shared)
		}
		watch := b.watch(e.Computer.ID)
		if !connected() {
			t.Error("with a sync waiting here it is not connected")
		}
		watch.unwatch()
	}
}

// Where other nodes can be asked who has a tunnel they are; a node that is not sure goes by
// when the computer was seen.
func TestOtherNodesSayWhatIsOn(t *testing.T) {
	t.Parallel()
	var held, sure bool
	b := newBench(t, func(c *Config) {
		c.SharedStore = true
		c.Held = func(_ context.Context, host string) (bool, bool) { return held && host == "maya.localhost", sure }
	})
	e := b.owner()
	seen := b.clock.Now()
	b.note(e.Computer.ID, seen)
	programs.Must(t, b.Feed.Seen.Write(t.Context()))
	for _, step := range []struct{ held, sure, on bool }{{false, true, false}, {true, true, true}, {false, false, true}} {
		held, sure = step.held, step.sure
		if p := ok[[]OwnComputer](t)(b.Computers.Own(t.Context(), e.AccountID))[0].Presence; p.On != step.on || p.Since.Equal(seen) == step.on {
			t.Errorf("%+v: %+v", step, p)
		}
	}
}

// Somebody whose apps have all ended is told when, and not whether the computer is on.
func TestMembershipThatEnded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	programs.Must(t, b.Agents.PutApps(t.Context(), e.Computer.ID, controlapi.Apps{Apps: []controlapi.App{{ID: "app1", Name: "notes", Label: "Notes", Live: true}}, TellOff: true}))
	bob := b.joined(e.Computer.ID, "bob@example.com", "app1")
	defer b.watch(e.Computer.ID).unwatch()
	of := func() (Membership, bool) {
		t.Helper()
		m := ok[[]Membership](t)(b.People.Memberships(t.Context(), bob.ID))[0]
		_, told := b.People.Presence(t.Context(), m)
		return m, told
	}
	if m, told := of(); !m.Ended.IsZero() || !told {
		t.Errorf("at first: %+v %t", m, told)
	}
	end := b.clock.Now().Add(time.Hour).Truncate(time.Second)
	ok[controlapi.Person](t)(b.People.SetAccess(t.Context(), e.Computer.ID, controlapi.SetAccess{AccountID: bob.ID, App: "app1", Granted: true, Until: end.Format(time.RFC3339)}))
	b.clock.Add(2 * time.Hour)
	if m, told := of(); !m.Ended.Equal(end) || told {
		t.Errorf("afterwards: %+v %t", m, told)
	}
}

// A client is connected to a computer where somebody is active, and to none where
// they are only invited; their own comes first.
func TestChoices(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	own := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "bob@example.com", "zoo"))
	for _, short := range []string{"active", "invited", "revoked"} {
		e := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "maya@example.com", short))
		b.apps(e, "app1")
		p := ok[controlapi.Person](t)(b.People.Invite(t.Context(), e.Computer.ID, controlapi.Invite{Email: "bob@example.com", Apps: []string{"app1"}}))
		switch short {
		case "active":
			ok[Accepted](t)(b.People.AcceptInvitation(t.Context(), b.invitation("bob@example.com"), "", home))
		case "revoked":
			ok[controlapi.Person](t)(b.People.Remove(t.Context(), e.Computer.ID, controlapi.Remove{AccountID: p.AccountID}))
		}
	}
	var names []string
	for _, m := range ok[[]Membership](t)(b.People.Choices(t.Context(), own.AccountID)) {
		names = append(names, m.Computer.Name)
	}
	if want := []string{"zoo", "active"}; !slices.Equal(names, want) {
		t.Errorf("the choices are %v, want %v", names, want)
	}
}

// A removed account has nothing left anywhere, and takes nothing of others along.
func TestRemoveAccount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	maya := b.owner()
	bob := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "bob@example.com", "bob"))
	b.apps(maya, "app1")
	b.apps(bob, "app2")
	// Each is shared something by the other.
	b.joined(maya.Computer.ID, "bob@example.com", "app1")
	b.joined(bob.Computer.ID, "maya@example.com", "app2")
	b.run()
	_, link, _ := b.begin("bob@example.com", 1)
	in := ok[SignedIn](t)(b.SignIn.WithLink(t.Context(), link, "", home))
	_, late, _ := b.begin("bob@example.com", 2)

	wantRefusal(t, b.Accounts.Remove(t.Context(), "nobody@example.com"), controlapi.CodeNotFound)
	programs.Must(t, b.Accounts.Remove(t.Context(), "bob@example.com"))
	_, err := b.Accounts.ByEmail(t.Context(), "bob@example.com")
	wantRefusal(t, err, controlapi.CodeNotFound)
	_, err = b.Sessions.Of(t.Context(), in.Token)
	wantRefusal(t, err, controlapi.CodeUnauthorized)
	_, err = b.SignIn.WithLink(t.Context(), late, "", home)
	wantRefusal(t, err, controlapi.CodeNotFound)
	_, err = b.Agents.Authenticate(t.Context(), bob.Credential)
	wantRefusal(t, err, controlapi.CodeUnauthorized)
	_, err = b.Computers.ByName(t.Context(), "bob")
	wantRefusal(t, err, controlapi.CodeNotFound)
	people := ok[[]controlapi.Person](t)(b.People.List(t.Context(), maya.Computer.ID))
	for _, p := range people {
		if p.Email == "bob@example.com" && p.Status != controlapi.PersonRemoved {
			t.Errorf("maya's computer has %+v", p)
		}
	}
	if list := ok[[]Membership](t)(b.People.Memberships(t.Context(), maya.AccountID)); len(list) != 1 || list[0].Computer.ID != maya.Computer.ID {
		t.Errorf("maya has %+v", list)
	}
	ok[controlapi.Computer](t)(b.Agents.Authenticate(t.Context(), maya.Credential))
	wantRefusal(t, b.Accounts.Remove(t.Context(), "bob@example.com"), controlapi.CodeNotFound)

	// The address can begin anew, as somebody else.
	again := ok[controlapi.Person](t)(b.People.Invite(t.Context(), maya.Computer.ID, controlapi.Invite{Email: "bob@example.com", Apps: []string{"app1"}}))
	if again.AccountID == bob.AccountID || again.Status != controlapi.PersonPending {
		t.Errorf("invited again: %+v", again)
	}
}

// meanwhile is a store in which something happens before the next Update.
type meanwhile struct {
	kv.Store
	happens func()
}

func (s *meanwhile) Update(ctx context.Context, fn func(kv.Tx) error) error {
	if happens := s.happens; happens != nil {
		s.happens = nil
		happens()
	}
	return s.Store.Update(ctx, fn)
}

// Weakness: a computer that is connected while its account is removed would be
// nobody's, and its name taken for good. Checked: it goes with the account.
func TestRemoveAccountWhileItConnects(t *testing.T) {
	t.Parallel()
	store := &meanwhile{}
	b := newBench(t, func(c *Config) { store.Store = c.Store; c.Store = store })
	ok[Account](t)(b.Accounts.Ensure(t.Context(), "bob@example.com"))
	store.happens = func() { ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "bob@example.com", "bob")) }
	programs.Must(t, b.Accounts.Remove(t.Context(), "bob@example.com"))
	_, err := b.Computers.ByName(t.Context(), "bob")
	wantRefusal(t, err, controlapi.CodeNotFound)
}

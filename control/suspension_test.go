package control

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// cuts are what OnSuspended was told, by computer.
type cuts struct {
	mu sync.Mutex
	of map[string]time.Time
}

func (c *cuts) told(id string, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]time.Time{}
	}
	c.of[id] = since
}

func (c *cuts) cut(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.of[id].IsZero()
}

// suspended is a computer of maya's that bob is at, with all that bob has there.
type suspended struct {
	someApps
	cuts   *cuts
	token  string // of bob's session
	tokens Tokens // of the client he let in
	visit  VisitRequest
	before controlapi.Snapshot
}

func newSuspended(t *testing.T) *suspended {
	t.Helper()
	s := &suspended{cuts: &cuts{}}
	b := newBench(t, func(c *Config) { c.OnSuspended, c.AbuseContact = s.cuts.told, "abuse@porch.example" })
	s.someApps = b.someApps()
	s.token, s.tokens = b.session("", s.bob.ID), s.granted(s.bob, "maya")
	s.visit = VisitRequest{Computer: "maya", App: "n1", RedirectURI: "https://notes.maya.localhost:8443" + controlapi.CallbackPath,
		Host: "notes.maya.localhost:8443", State: "state", Challenge: challengeOf(proof)}
	p := b.rowOf(s.computer, s.bob.ID)
	b.change(func(tx *txn) {
		programs.Must(t, tx.putPassword(s.computer, appPassword{ID: anID(), AccountID: s.bob.ID, AppID: "n1", Hash: "hash", InvitedAt: p.InvitedAt}))
	})
	s.before = s.snapshot()
	return s
}

// opens says what of all that is bob's opens something now.
func (s *suspended) opens() (out []string) {
	s.t.Helper()
	note := func(what string, err error) {
		if err == nil {
			out = append(out, what)
		} else if !IsRefusal(err, controlapi.CodeSuspended) || !strings.Contains(err.Error(), "ask abuse@porch.example") {
			s.t.Errorf("%s: %v", what, err)
		}
	}
	session, err := s.Sessions.Of(s.t.Context(), s.token)
	note("session", err)
	if err != nil {
		session = Session{Account: s.bob}
	}
	_, err = s.Visits.Begin(s.t.Context(), s.visit, session)
	if !IsRefusal(err, controlapi.CodeForbidden) { // of a person who is suspended nothing is told here: they have no session
		note("visit", err)
	}
	tokens, err := s.use(s.tokens.Refresh)
	if note("token", err); err == nil {
		s.tokens = tokens
	}
	snap := s.snapshot()
	i := slices.IndexFunc(snap.People, func(p controlapi.Person) bool { return p.AccountID == s.bob.ID })
	if snap.People[i].Epoch == s.before.People[i].Epoch {
		out = append(out, "app session")
	}
	if len(snap.Passwords) > 0 {
		out = append(out, "password")
	}
	if len(snap.RevokedGrants) == 0 {
		out = append(out, "access token")
	}
	if snap.Suspended == nil {
		out = append(out, "computer")
	}
	return out
}

// Whatever is suspended, all that depends on it opens nothing, to agents that know of no
// suspension either. Once it is resumed no program connects anew.
// Weakness: a suspension said that sessions end, and they were back with it. Checked: people
// sign in again, here if their account was suspended, and at whatever was.
func TestSuspended(t *testing.T) {
	t.Parallel()
	all := []string{"session", "visit", "token", "app session", "password", "access token", "computer"}
	apps, both := []string{"app session"}, []string{"session", "app session"}
	for _, c := range []struct {
		kind SuspensionKind
		id   func(s *suspended) string
		left []string
		cut  bool
		gone []string // for good
	}{
		{SuspendComputer, func(*suspended) string { return "maya" }, []string{"session"}, true, apps},
		{SuspendComputer, func(s *suspended) string { return s.computer }, []string{"session"}, true, apps},
		{SuspendAccount, func(*suspended) string { return "maya@example.com" }, []string{"session"}, true, apps},
		{SuspendAccount, func(s *suspended) string { return s.bob.ID }, []string{"computer"}, false, both},
		{SuspendAddress, func(*suspended) string { return "Bob@Example.com" }, []string{"computer"}, false, both},
		{SuspendAddress, func(*suspended) string { return "maya@example.com" }, []string{"session"}, true, apps},
		{SuspendDomain, func(*suspended) string { return "example.com" }, nil, true, both},
		{SuspendClient, func(s *suspended) string { return s.ID }, []string{"session", "visit", "app session", "password", "computer"}, false, nil},
	} {
		s := newSuspended(t)
		watch := s.watch(s.computer)
		if got := s.opens(); !slices.Equal(got, all) {
			t.Fatalf("before it opens %q", got)
		}
		row := ok[Suspension](t)(s.Suspensions.Suspend(t.Context(), c.kind, c.id(s), "Complaint 2211", "op"))
		if got := s.opens(); !slices.Equal(got, c.left) {
			t.Errorf("%s %s suspended, it opens %q", c.kind, row.Name, got)
		}
		if s.cuts.cut(s.computer) != c.cut || !watch.woken() {
			t.Errorf("%s %s: the relay cuts: %t", c.kind, row.Name, s.cuts.cut(s.computer))
		}
		s.clock.Add(time.Hour)
		if list := ok[[]Suspension](t)(s.Suspensions.List(t.Context())); len(list) != 1 || list[0] != row || row.Reason != "Complaint 2211" || row.By != "op" {
			t.Errorf("listed are %+v", list)
		}
		ok[Suspension](t)(s.Suspensions.Resume(t.Context(), c.kind, c.id(s), "", "op"))
		if c.gone != nil {
			_, err := s.Sessions.Of(t.Context(), s.token)
			if signedOut := IsRefusal(err, controlapi.CodeUnauthorized); signedOut != slices.Contains(c.gone, "session") {
				t.Errorf("%s %s resumed, bob's session: %v", c.kind, row.Name, err)
			}
			s.token = s.session("", s.bob.ID)
		}
		back := slices.DeleteFunc(slices.Clone(all), func(what string) bool { return what == "app session" && c.gone != nil })
		if got := s.opens(); !slices.Equal(got, back) || s.cuts.cut(s.computer) || s.snapshot().Suspended != nil {
			t.Errorf("%s %s resumed, it opens %q", c.kind, row.Name, got)
		}
		if _, err := s.Suspensions.Resume(t.Context(), c.kind, c.id(s), "", "op"); !IsRefusal(err, controlapi.CodeNotFound) {
			t.Errorf("resumed twice: %v", err)
		}
		watch.unwatch()
	}
}

// What is suspended twice is so until both are resumed.
func TestSuspendedTwice(t *testing.T) {
	t.Parallel()
	s := newSuspended(t)
	for _, kind := range []SuspensionKind{SuspendAddress, SuspendAccount} {
		ok[Suspension](t)(s.Suspensions.Suspend(t.Context(), kind, "maya@example.com", "test", "op"))
	}
	ok[Suspension](t)(s.Suspensions.Suspend(t.Context(), SuspendComputer, "maya", "test", "op"))
	for _, kind := range []SuspensionKind{SuspendAddress, SuspendAccount} {
		ok[Suspension](t)(s.Suspensions.Resume(t.Context(), kind, "maya@example.com", "", "op"))
		if !s.cuts.cut(s.computer) || s.snapshot().Suspended == nil {
			t.Errorf("the computer is on again once the %s is", kind)
		}
	}
	ok[Suspension](t)(s.Suspensions.Resume(t.Context(), SuspendComputer, "maya", "", "op"))
	if s.cuts.cut(s.computer) {
		t.Error("the computer is off though everything is resumed")
	}
}

// Weakness: a suspension that counts only for who is there. Attack: an account of the
// address, or of its domain, is made afterwards, and takes an invitation. Checked: it opens nothing.
func TestSuspendedBeforeTheyCame(t *testing.T) {
	t.Parallel()
	for kind, id := range map[SuspensionKind]string{SuspendAddress: "carl@sub.example.net", SuspendDomain: "example.net"} {
		s := newSuspended(t)
		ok[Suspension](t)(s.Suspensions.Suspend(t.Context(), kind, id, "test", "op"))
		ok[controlapi.Person](t)(s.People.Invite(t.Context(), s.computer, controlapi.Invite{Email: "carl@sub.example.net", Apps: []string{"n1"}}))
		link := s.invitation("carl@sub.example.net")
		_, err := s.People.AcceptInvitation(t.Context(), link, "", home)
		wantRefusal(t, err, controlapi.CodeSuspended)
		ok[Suspension](t)(s.Suspensions.Resume(t.Context(), kind, id, "", "op"))
		ok[Accepted](t)(s.People.AcceptInvitation(t.Context(), link, "", home))
	}
	// A computer that was just being connected is suspended with its owner.
	s := newSuspended(t)
	ok[Suspension](t)(s.Suspensions.Suspend(t.Context(), SuspendDomain, "example.net", "test", "op"))
	late := ok[controlapi.Enrolled](t)(s.Computers.Ensure(t.Context(), "dora@example.net", "dora"))
	since := func() (computer, owner time.Time) {
		return late.Computer.Suspended, s.rowOf(late.Computer.ID, late.AccountID).Suspended
	}
	if c, owner := since(); c.IsZero() || owner.IsZero() {
		t.Errorf("suspended since %v, and its owner since %v", c, owner)
	}
	ok[Suspension](t)(s.Suspensions.Resume(t.Context(), SuspendDomain, "example.net", "", "op"))
	late = ok[controlapi.Enrolled](t)(s.Computers.Ensure(t.Context(), "dora@example.net", "dora"))
	if c, owner := since(); !c.IsZero() || !owner.IsZero() {
		t.Errorf("resumed, suspended since %v, and its owner since %v", c, owner)
	}
}

// Of a domain those who have an account there, and below it, are found with the index of accounts
// and while that is being made; nobody else is.
func TestSuspendedDomain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	of := map[string]bool{"a@example.net": true, "b@sub.example.net": true, "c@notexample.net": false, "d@example.net.org": false, "e@other.net": false}
	for email := range of {
		ok[Account](t)(b.Accounts.Ensure(t.Context(), email))
	}
	for _, indexed := range []bool{false, true} {
		if indexed {
			programs.Must(t, b.Overview.IndexAll(t.Context()))
		}
		for _, on := range []bool{true, false} {
			if on {
				ok[Suspension](t)(b.Suspensions.Suspend(t.Context(), SuspendDomain, "example.net", "test", "op"))
			} else {
				ok[Suspension](t)(b.Suspensions.Resume(t.Context(), SuspendDomain, "example.net", "", "op"))
			}
			for email, within := range of {
				if a := ok[Account](t)(b.Accounts.ByEmail(t.Context(), email)); a.Suspended.IsZero() == (on && within) {
					t.Errorf("indexed %v, suspended %v: %s is suspended since %v", indexed, on, email, a.Suspended)
				}
			}
		}
	}
}

// A suspended computer lets nobody in and mails nobody; what its owner takes away it takes away.
func TestSuspendedComputerGivesNothing(t *testing.T) {
	t.Parallel()
	s := newSuspended(t)
	ok[controlapi.Person](t)(s.People.Invite(t.Context(), s.computer, controlapi.Invite{Email: "carl@example.net", Apps: []string{"n1"}}))
	link := s.invitation("carl@example.net")
	ok[Suspension](t)(s.Suspensions.Suspend(t.Context(), SuspendComputer, "maya", "test", "op"))
	_, err := s.People.Invite(t.Context(), s.computer, controlapi.Invite{Email: "dora@example.net", Apps: []string{"n1"}})
	wantRefusal(t, err, controlapi.CodeSuspended)
	_, err = s.People.AcceptInvitation(t.Context(), link, "", home)
	wantRefusal(t, err, controlapi.CodeSuspended)
	_, err = s.codeFor("n1")
	wantRefusal(t, err, controlapi.CodeSuspended)
	_, err = s.Recovery.Link(t.Context(), s.computer, controlapi.LinkForOwner{})
	wantRefusal(t, err, controlapi.CodeSuspended)
	ok[controlapi.Person](t)(s.People.Remove(t.Context(), s.computer, controlapi.Remove{AccountID: s.bob.ID}))
	ok[Suspension](t)(s.Suspensions.Resume(t.Context(), SuspendComputer, "maya", "", "op"))
	if i := slices.IndexFunc(s.snapshot().People, func(p controlapi.Person) bool { return p.AccountID == s.bob.ID }); s.snapshot().People[i].Status != controlapi.PersonRemoved {
		t.Error("who was removed meanwhile is back")
	}
}

// Weakness: what is suspended is a row that its owner may remove. Attack: the owner of a
// suspended computer, who is not suspended, removes it and connects another under its name, and
// somebody else does. Checked: the name stays down until the operator resumes what had it,
// and the owner may connect a computer of another name.
func TestSuspendedComputerIsRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	ok[Suspension](t)(b.Suspensions.Suspend(t.Context(), SuspendComputer, "maya", "test", "op"))
	programs.Must(t, b.Computers.Remove(t.Context(), e.AccountID, "maya"))
	connects := func(email, name string) error {
		account := ok[Account](t)(b.Accounts.Ensure(t.Context(), email))
		started := ok[controlapi.EnrolStarted](t)(b.Enrolment.Begin(t.Context(), controlapi.EnrolRequest{Machine: "laptop", Platform: "linux"}, home))
		_, err := b.Enrolment.Confirm(t.Context(), b.newSession(account), started.UserCode, name, false, home)
		return err
	}
	wantRefusal(t, connects("maya@example.com", "maya"), controlapi.CodeSuspended)
	b.clock.Add(keepName + time.Hour) // others may take other names then
	wantRefusal(t, connects("olga@example.com", "maya"), controlapi.CodeSuspended)
	programs.Must(t, connects("maya@example.com", "another"))
	ok[Suspension](t)(b.Suspensions.Resume(t.Context(), SuspendComputer, e.Computer.ID, "", "op"))
	programs.Must(t, connects("maya@example.com", "maya"))
}

// A code for a visit that was handed out before is worth nothing.
func TestSuspendedVisit(t *testing.T) {
	t.Parallel()
	s := newSuspended(t)
	session := ok[Session](t)(s.Sessions.Of(t.Context(), s.token))
	to := ok[string](t)(s.Visits.Begin(t.Context(), s.visit, session))
	_, code, _ := strings.Cut(to, controlapi.ParamCode+"=")
	code, _, _ = strings.Cut(code, "&")
	ok[Suspension](t)(s.Suspensions.Suspend(t.Context(), SuspendComputer, "maya", "test", "op"))
	_, err := s.Visits.Redeem(t.Context(), s.computer, controlapi.Redeem{Code: code, CodeVerifier: proof, RedirectURI: s.visit.RedirectURI})
	wantRefusal(t, err, controlapi.CodeSuspended)
}

// What one node suspends or resumes the others cut off or let in.
func TestSuspendedAtOtherNodes(t *testing.T) {
	t.Parallel()
	there := &cuts{}
	b := newBench(t, func(c *Config) { c.SharedStore, c.OnSuspended = true, there.told })
	b.run()
	e := b.owner()
	other := b.node(func(c *Config) { c.OnSuspended = nil })
	ok[Suspension](t)(other.Suspensions.Suspend(t.Context(), SuspendAccount, e.AccountID, "test", "op"))
	b.Agents.Heard([]string{e.Computer.ID})
	programs.Eventually(t, "the other node cuts", func() bool { return there.cut(e.Computer.ID) })
	ok[Suspension](t)(other.Suspensions.Resume(t.Context(), SuspendAccount, e.AccountID, "", "op"))
	b.Agents.Heard([]string{e.Computer.ID})
	programs.Eventually(t, "the other node lets in", func() bool { return !there.cut(e.Computer.ID) })
}

func TestSuspendRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.owner()
	for _, c := range []struct{ kind, id, reason, code string }{
		{"account", "maya@example.com", " ", controlapi.CodeInvalid},
		{"account", "maya@example.com", strings.Repeat("a", 501), controlapi.CodeInvalid},
		{"account", "maya@example.com", "a\nb", controlapi.CodeInvalid},
		{"account", "nobody@example.com", "test", controlapi.CodeNotFound},
		{"computer", "bob", "test", controlapi.CodeNotFound},
		{"client", "x", "test", controlapi.CodeNotFound},
		{"address", "maya", "test", controlapi.CodeInvalid},
		{"domain", "com", "test", controlapi.CodeInvalid},
		{"domain", "not a domain", "test", controlapi.CodeInvalid},
		{"planet", "mars", "test", controlapi.CodeInvalid},
	} {
		if _, err := b.Suspensions.Suspend(t.Context(), SuspensionKind(c.kind), c.id, c.reason, "op"); !IsRefusal(err, c.code) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Weakness: a program's token that may suspend takes the server from its operators, or brings
// one back whom the others have ended. Checked: by no kind of suspension that is about one;
// everybody else's it may, and the command line and another operator may all.
func TestTokensLeaveOperatorsAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	lena := ok[Operator](t)(b.Operators.Add(t.Context(), "lena@ops.porch.example"))
	other := ok[Account](t)(b.Accounts.Ensure(t.Context(), "max@porch.example"))
	program := AdminToken{ID: "t1"}.By()
	about := map[SuspensionKind][]string{
		SuspendAccount: {lena.ID, lena.Email}, SuspendAddress: {lena.Email}, SuspendDomain: {"ops.porch.example", "porch.example"},
	}
	for kind, ids := range about {
		for _, id := range ids {
			_, err := b.Suspensions.Suspend(t.Context(), kind, id, "spam", program)
			wantRefusal(t, err, controlapi.CodeForbidden)
			ok[Suspension](t)(b.Suspensions.Suspend(t.Context(), kind, id, "spam", other.ID))
			_, err = b.Suspensions.Resume(t.Context(), kind, id, "", program)
			wantRefusal(t, err, controlapi.CodeForbidden)
			ok[Suspension](t)(b.Suspensions.Resume(t.Context(), kind, id, "", ByCommandLine))
		}
	}
	for kind, id := range map[SuspensionKind]string{SuspendAccount: other.ID, SuspendAddress: "max@porch.example", SuspendDomain: "orch.example"} {
		ok[Suspension](t)(b.Suspensions.Suspend(t.Context(), kind, id, "spam", program))
		ok[Suspension](t)(b.Suspensions.Resume(t.Context(), kind, id, "", program))
	}
}

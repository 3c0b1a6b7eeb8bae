package control

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// How many requests at once a computer has, and how many credentials a network may show that
// are refused.
const computerAtOnce, refusedAtOnce = 600, 60

// public makes a bench that is not local mode's.
func public(cfg *Config) {
	cfg.Domain, cfg.AuthHost, cfg.PublicPort = "porch.example", "control.example", 443
}

// asks counts how many of n requests at one moment are let in, and checks what
// the others are told.
func (b *bench) asks(n int, credential, client string) (in int) {
	b.t.Helper()
	for range n {
		_, err := b.Agents.AuthenticateFrom(b.t.Context(), credential, netip.MustParseAddr(client), false)
		switch {
		case !IsRefusal(err, controlapi.CodeTooMany):
			in++
		case err.(*controlapi.Error).RetryAfter <= 0 || err.(*controlapi.Error).RetryAfter > time.Minute:
			b.t.Fatalf("refused for %v", err.(*controlapi.Error).RetryAfter)
		}
	}
	return in
}

func TestComputersAskAsOftenAsTheyMay(t *testing.T) {
	t.Parallel()
	b := newBench(t, public)
	maya := b.owner()
	ben := programs.Got(b.Computers.Ensure(t.Context(), "ben@example.com", "ben"))(t)
	const here = "192.0.2.7"
	if in := b.asks(700, maya.Credential, here); in != computerAtOnce {
		t.Errorf("%d requests at once got in", in)
	}
	if in := b.asks(1, maya.Credential, "198.51.100.1"); in != 0 {
		t.Error("another network is another bucket")
	}
	if in := b.asks(10, ben.Credential, here); in != 10 {
		t.Errorf("another computer of the network got in %d times", in)
	}
	b.clock.Add(time.Second)
	if in := b.asks(100, maya.Credential, here); in != 20 {
		t.Errorf("%d requests got in a second later", in)
	}
	b.clock.Add(time.Hour)
	if in := b.asks(700, maya.Credential, here); in != computerAtOnce {
		t.Errorf("%d requests at once got in an hour later", in)
	}
	b.clock.Add(-24 * time.Hour) // the clock was wrong, and is set right
	if b.clock.Add(time.Minute); b.asks(1, maya.Credential, here) != 1 {
		t.Error("a clock that was set back keeps a computer out")
	}
}

func TestLocalModeIsNotBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if in := b.asks(2000, b.owner().Credential, "127.0.0.1"); in != 2000 {
		t.Errorf("%d of 2000 got in", in)
	}
}

// Weakness: a credential that is not good costs a look into the store each time
// it is shown, so whoever shows many keeps the store busy. Attack: a network does
// so. Checked: after a while nothing is looked up for it, but for computers whose
// credential was good a moment ago, and other networks.
func TestRefusedCredentialsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, public)
	maya := b.owner()
	const here, elsewhere = "2001:db8:1:2::7", "2001:db8:1:3::7"
	if b.asks(1, maya.Credential, here) != 1 {
		t.Fatal("the credential is not good")
	}
	wrong := func(i int) string { return fmt.Sprintf("%043d", i) }
	in := 0
	for i := range 500 {
		in += b.asks(1, wrong(i), fmt.Sprintf("2001:db8:1:2::%x", i)) // every address of one customer
	}
	if in != refusedAtOnce {
		t.Errorf("%d wrong credentials were looked up", in)
	}
	if b.asks(50, maya.Credential, here) != 50 {
		t.Error("a computer of that network was kept out")
	}
	if b.asks(1, wrong(1), elsewhere) != 1 {
		t.Error("another network was kept out")
	}
	b.clock.Add(10 * time.Second)
	if in := b.asks(50, wrong(2), here); in != 10 {
		t.Errorf("%d got in ten seconds later", in)
	}

	// What no credential looks like is refused without a look, and counts for nothing.
	b.clock.Add(time.Minute)
	for _, none := range []string{"", "short", wrong(3) + "="} {
		if in := b.asks(100, none, here); in != 100 {
			t.Errorf("%q was told to wait, after %d times", none, in)
		}
	}
	// Who gives up waiting has been looked up.
	gone, giveUp := context.WithCancel(t.Context())
	giveUp()
	for i := range refusedAtOnce {
		if _, err := b.Agents.AuthenticateFrom(gone, wrong(i), netip.MustParseAddr(here), false); !errors.Is(err, context.Canceled) {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if in := b.asks(1, wrong(1), here); in != 0 {
		t.Error("requests that were given up were not counted")
	}

	// A credential that is over loses its place at once.
	programs.Must(t, b.Agents.EndCredential(t.Context(), maya.Credential))
	b.clock.Add(time.Hour)
	if in := b.asks(500, maya.Credential, here); in > refusedAtOnce+1 {
		t.Errorf("a credential that is over was looked up %d times", in)
	}
}

// An owner sends 50 invitations a day, to whomever and from whichever of their
// computers; a refused one leaves nothing.
func TestOwnersInvitationsADay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.owner()
	second := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "maya@example.com", "attic"))
	b.apps(first, "app1")
	b.apps(second, "app2")
	invite := func(n int) error {
		computer, app := first.Computer.ID, "app1"
		if n%2 == 1 {
			computer, app = second.Computer.ID, "app2"
		}
		_, err := b.People.Invite(t.Context(), computer, controlapi.Invite{Email: fmt.Sprintf("p%d@example.com", n), Apps: []string{app}})
		return err
	}
	for n := range 50 {
		if err := invite(n); err != nil {
			t.Fatalf("invitation %d: %v", n, err)
		}
		b.clock.Add(time.Minute)
	}
	before := b.rows("")
	err := invite(50)
	var refusal *controlapi.Error
	if !errors.As(err, &refusal) || refusal.Code != controlapi.CodeTooMany || refusal.RetryAfter != 24*time.Hour-50*time.Minute {
		t.Fatalf("the 51st: %v (%+v)", err, refusal)
	}
	if after := b.rows(""); after != before || len(b.mails()) != 50 {
		t.Errorf("%d rows became %d, and there are %d mails", before, after, len(b.mails()))
	}
	// Others are not held up by it.
	bob := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "bob@example.com", "bob"))
	b.apps(bob, "app3")
	ok[controlapi.Person](t)(b.People.Invite(t.Context(), bob.Computer.ID, controlapi.Invite{Email: "p50@example.com", Apps: []string{"app3"}}))
	b.clock.Add(refusal.RetryAfter)
	if err := invite(50); err != nil {
		t.Errorf("after the wait: %v", err)
	}
}

// Weakness: a clock that was a year ahead for a moment leaves rows from the
// future, and a budget counts from its newest event. Checked: once the clock is
// right again, a spent budget holds nobody up longer than it should, and one that
// is spent now still does, by the clock of a node a little ahead too.
func TestBudgetAfterTheClockWasAhead(t *testing.T) {
	t.Parallel()
	kind := budgetKind{limits: []limit{{2, time.Hour}}}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var w window
	spend := func(at time.Time) time.Duration {
		var wait time.Duration
		w, wait = w.spend(at, kind)
		return wait
	}
	ahead := now.AddDate(1, 0, 0)
	spend(ahead)
	spend(ahead.Add(time.Second))
	if wait := spend(now); wait != 0 {
		t.Errorf("after the clock was set back, the wait is %v", wait)
	}
	spend(now)
	if wait := spend(now.Add(time.Second)); wait == 0 || wait > time.Hour {
		t.Errorf("the third within an hour waits %v", wait)
	}
	w = nil
	spend(now.Add(clocksDiffer))
	spend(now.Add(clocksDiffer))
	if wait := spend(now); wait == 0 {
		t.Error("what a node whose clock is ahead has spent does not count")
	}
}

// Weakness: a session made while the clock was ahead would count as just made for
// as long as it was ahead. Checked: it does not connect a computer.
func TestFreshAfterTheClockWasAhead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	now := b.clock.Now()
	for age, fresh := range map[time.Duration]bool{
		0: true, FreshFor - time.Second: true, FreshFor: false,
		-time.Second: true, -time.Hour: false, -365 * 24 * time.Hour: false,
	} {
		session := Session{Proven: now.Add(-age)}
		if got := ok[bool](t)(b.Sessions.Fresh(t.Context(), session)); got != fresh {
			t.Errorf("%v old: %v", age, got)
		}
		_, err := b.Enrolment.Confirm(t.Context(), session, "BCDF-GHJK", "maya", false, home)
		if !fresh && !IsRefusal(err, controlapi.CodeUnauthorized) {
			t.Errorf("%v old: %v", age, err)
		}
	}
}

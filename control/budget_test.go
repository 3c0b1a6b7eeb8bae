package control

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"porchlight/control/controlapi"
)

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
		session := Session{CreatedAt: now.Add(-age)}
		if got := b.Sessions.Fresh(session); got != fresh {
			t.Errorf("%v old: %v", age, got)
		}
		_, err := b.Enrolment.Confirm(t.Context(), session, "BCDF-GHJK", "maya", false, home)
		if !fresh && !IsRefusal(err, controlapi.CodeUnauthorized) {
			t.Errorf("%v old: %v", age, err)
		}
	}
}

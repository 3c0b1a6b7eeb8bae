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
		_, err := b.People.Invite(t.Context(), computer, fmt.Sprintf("p%d@example.com", n), []string{app})
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
	ok[controlapi.Person](t)(b.People.Invite(t.Context(), bob.Computer.ID, "p50@example.com", []string{"app3"}))
	b.clock.Add(refusal.RetryAfter)
	if err := invite(50); err != nil {
		t.Errorf("after the wait: %v", err)
	}
}

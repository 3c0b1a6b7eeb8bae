package people_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// longHold is longer than any test: what ends it is not the clock.
const longHold = int(agentapi.MaxHold / time.Second)

// held removes bob for a while and checks that he is out here and nowhere else.
func (r *rig) held(t *testing.T, id string, seconds int) agentapi.PersonChanged {
	t.Helper()
	changed, err := r.owner.RemoveHeld(t.Context(), agentapi.RemoveRequest{AccountID: id, HoldSeconds: seconds})
	if err != nil || !changed.OK || changed.HeldUntil == nil || changed.Person.Status != agentapi.PersonRemoved {
		t.Fatalf("removing: %+v, %v", changed, err)
	}
	if left := time.Until(*changed.HeldUntil); left > time.Duration(seconds)*time.Second {
		t.Errorf("held for %v", left)
	}
	if bob := r.known(t, bobMail); bob.Status != agentapi.PersonRemoved {
		t.Errorf("here he is %+v", bob)
	}
	return changed
}

// stored is what left returns, of an agent that runs: what a kill would leave.
func (r *rig) stored(t *testing.T) ([]store.DenyRecord, []store.PendingChange) {
	t.Helper()
	killed := programs.Got(os.ReadFile(filepath.Join(r.dir, store.FileName)))(t)
	dead := &rig{dir: t.TempDir(), end: func() {}}
	programs.Must(t, os.WriteFile(filepath.Join(dead.dir, store.FileName), killed, 0o600))
	return dead.left(t)
}

// row is a person as the control plane has them.
func (r *rig) row(t *testing.T, id string) controlapi.Person {
	t.Helper()
	people := programs.Got(r.service.People.List(t.Context(), r.device.Computer.ID))(t)
	i := slices.IndexFunc(people, func(p controlapi.Person) bool { return p.AccountID == id })
	if i < 0 {
		t.Fatalf("the control plane does not know %s", id)
	}
	return people[i]
}

// TestHeldAndUndone: a removal taken back in time leaves everything as it was,
// here and at the control plane, and nobody is mailed.
func TestHeldAndUndone(t *testing.T) {
	t.Parallel()
	r, id := startWithBob(t, "Notes", "Wiki")
	before, mails, listed := r.row(t, id), r.mails(t), r.known(t, bobMail)
	r.held(t, id, longHold)
	if denied, pending := r.stored(t); len(denied) != 1 || len(pending) != 1 || pending[0].Sent {
		t.Fatalf("written down: %+v, %+v", denied, pending)
	}
	if now := r.row(t, id); now.Status != before.Status {
		t.Fatalf("the control plane knows: %+v", now)
	}
	back, err := r.owner.UndoHeld(t.Context(), agentapi.HeldChange{AccountID: id})
	if err != nil || !back.OK || back.HeldUntil != nil || back.Person.Status != agentapi.PersonActive || !slices.Equal(back.Person.Apps, listed.Apps) {
		t.Fatalf("undone: %+v, %v", back, err)
	}
	if _, err := r.owner.UndoHeld(t.Context(), agentapi.HeldChange{AccountID: id}); agentapi.CodeOf(err) != agentapi.CodeConflict {
		t.Errorf("undone twice: %v", err)
	}
	if denied, pending := r.left(t); len(denied) != 0 || len(pending) != 0 {
		t.Errorf("left behind: %+v, %+v", denied, pending)
	}
	r.serve(t)
	if now := r.row(t, id); now.Epoch != before.Epoch || now.Status != before.Status || !slices.Equal(now.Apps, before.Apps) {
		t.Errorf("at the control plane %+v, was %+v", now, before)
	}
	if r.mails(t) != mails {
		t.Error("somebody was mailed")
	}
}

// TestHeldIsOver: what is not taken back is carried out: when its moment is over,
// when it is settled, and when the agent stops.
func TestHeldIsOver(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]func(*rig, string) error{
		"by the clock": func(*rig, string) error { return nil },
		"settled": func(r *rig, id string) error {
			return r.owner.SettleHeld(t.Context(), agentapi.HeldChange{AccountID: id})
		},
		"all settled": func(r *rig, _ string) error { return r.owner.SettleHeld(t.Context(), agentapi.HeldChange{}) },
		"removed for good": func(r *rig, id string) error {
			_, err := r.owner.Remove(t.Context(), id)
			return err
		},
		"stopped": func(r *rig, _ string) error { r.end(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, id := startWithBob(t, "Notes")
			seconds := longHold
			if name == "by the clock" {
				seconds = 1
			}
			r.held(t, id, seconds)
			programs.Must(t, over(r, id))
			r.await(t, func() bool { return r.member(t, bobMail).Status == agentapi.PersonRemoved })
			if name == "stopped" {
				return
			}
			if _, err := r.owner.UndoHeld(t.Context(), agentapi.HeldChange{AccountID: id}); agentapi.CodeOf(err) != agentapi.CodeConflict {
				t.Errorf("undone too late: %v", err)
			}
			r.settled(t)
			if bob := r.known(t, bobMail); bob.Status != agentapi.PersonRemoved {
				t.Errorf("afterwards %+v", bob)
			}
		})
	}
}

// TestHeldAndKilled. Weakness: a removal that waits for its Undo lives in memory.
// Attack: kill the agent while it waits, with the control plane reachable and
// away. Checked: after the restart the person is out from the first moment, the
// removal is carried out, and it cannot be undone any more.
func TestHeldAndKilled(t *testing.T) {
	t.Parallel()
	for _, away := range []bool{false, true} {
		r, id := startWithBob(t, "Notes")
		if away {
			r.down()
		}
		r.held(t, id, longHold)
		r.kill(t)
		if status := r.member(t, bobMail).Status; status != agentapi.PersonActive {
			t.Fatalf("the control plane was told: %s", status)
		}
		r.serve(t)
		if bob := r.known(t, bobMail); bob.Status != agentapi.PersonRemoved {
			t.Errorf("after the restart %+v", bob)
		}
		if _, err := r.owner.UndoHeld(t.Context(), agentapi.HeldChange{AccountID: id}); agentapi.CodeOf(err) != agentapi.CodeConflict {
			t.Errorf("undone after a restart: %v", err)
		}
		r.up()
		r.await(t, func() bool { return r.member(t, bobMail).Status == agentapi.PersonRemoved })
		r.settled(t)
	}
}

// TestSwitchedOffAndOnAgain: a withdrawal that is held goes when the app is
// given again, without a network; one app's Undo leaves another's alone.
func TestSwitchedOffAndOnAgain(t *testing.T) {
	t.Parallel()
	r, id := startWithBob(t, "Notes", "Wiki")
	r.down()
	for _, app := range []string{"Notes", "Wiki"} {
		changed, err := r.owner.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: id, App: app, HoldSeconds: longHold})
		if err != nil || changed.HeldUntil == nil || slices.Contains(changed.Person.Apps, app) {
			t.Fatalf("%+v, %v", changed, err)
		}
	}
	changed, err := r.owner.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: id, App: "Notes", Granted: true})
	if err != nil || !slices.Equal(changed.Person.Apps, []string{"Notes"}) {
		t.Fatalf("switched on again: %+v, %v", changed, err)
	}
	if _, err := r.owner.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: id, App: "Notes", Granted: true}); agentapi.CodeOf(err) != agentapi.CodeUnavailable {
		t.Errorf("given what he has, with nobody to ask: %v", err)
	}
	changed, err = r.owner.UndoHeld(t.Context(), agentapi.HeldChange{AccountID: id, App: "Wiki"})
	if err != nil || !slices.Equal(changed.Person.Apps, []string{"Notes", "Wiki"}) {
		t.Fatalf("undone: %+v, %v", changed, err)
	}
	if denied, pending := r.stored(t); len(denied) != 0 || len(pending) != 0 {
		t.Errorf("left behind: %+v, %+v", denied, pending)
	}
}

// TestInvitedWhileHeld: the invitation comes after the removal that was held, as
// the owner meant it, and not the other way round.
func TestInvitedWhileHeld(t *testing.T) {
	t.Parallel()
	r, id := startWithBob(t, "Notes")
	r.publish(t, "wiki", "Wiki")
	r.held(t, id, longHold)
	programs.Got(r.owner.Invite(t.Context(), agentapi.InviteRequest{Email: bobMail, Apps: []string{"Wiki"}}))(t)
	if bob := r.listed(t, bobMail); bob.Status != agentapi.PersonPending || !slices.Equal(bob.Apps, []string{"Wiki"}) {
		t.Errorf("invited again as %+v", bob)
	}
	if _, err := r.owner.UndoHeld(t.Context(), agentapi.HeldChange{AccountID: id}); agentapi.CodeOf(err) != agentapi.CodeConflict {
		t.Errorf("undone: %v", err)
	}
	r.settled(t)
}

// TestOnlyTheOwnerHolds: what a program takes away is gone at once, whatever it
// says, and it has no undo of this kind.
func TestOnlyTheOwnerHolds(t *testing.T) {
	t.Parallel()
	r, id := startWithBob(t, "Notes")
	got := r.call(t, "POST", "/people/revoke", `{"accountId":"`+id+`","holdSeconds":30}`, r.capability(t))
	if got.status != http.StatusOK || got.body["heldUntil"] != nil {
		t.Fatalf("HTTP %d %v", got.status, got.body)
	}
	if status := r.member(t, bobMail).Status; status != agentapi.PersonRemoved {
		t.Errorf("the control plane has him as %s", status)
	}
	for _, path := range []string{"/owner/people/undo", "/owner/people/settle"} {
		if got := r.call(t, "POST", path, `{"accountId":"`+id+`"}`, r.capability(t)); got.status != http.StatusForbidden {
			t.Errorf("%s by a program: HTTP %d %v", path, got.status, got.body)
		}
	}
	for _, seconds := range []int{-1, longHold + 1} {
		_, err := r.owner.RemoveHeld(t.Context(), agentapi.RemoveRequest{AccountID: id, HoldSeconds: seconds})
		if agentapi.CodeOf(err) != agentapi.CodeInvalid || !strings.Contains(err.Error(), "60 seconds") {
			t.Errorf("held for %d: %v", seconds, err)
		}
	}
}

package people_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/activity"
	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/people"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// unreachable is a control plane that never answers.
type unreachable struct{ people.Control }

func (unreachable) Remove(ctx context.Context, _ controlapi.Remove) (controlapi.Person, error) {
	return controlapi.Person{}, context.DeadlineExceeded
}

// household opens what the package needs on the data directory dir, and has it
// hear the snapshot of a computer that ann and bob are members of.
func household(t *testing.T, dir, computer string, opts ...store.Option) (*people.People, *store.Store, *access.Access) {
	t.Helper()
	s := programs.Got(store.Open(dir, opts...))(t)
	t.Cleanup(func() { s.Close() })
	a := programs.Got(access.New(access.Config{Store: s}))(t)
	apps := programs.Got(engine.NewApps(engine.AppsConfig{Store: s}))(t)
	a.SetSnapshot(controlapi.Snapshot{
		Version: "1-" + computer, Computer: controlapi.Computer{ID: computer},
		People: []controlapi.Person{
			{AccountID: "bob", Email: bobMail, Role: controlapi.RoleMember, Status: controlapi.PersonActive, Epoch: 1},
			{AccountID: "ann", Email: "ann@example.com", Role: controlapi.RoleMember, Status: controlapi.PersonActive, Epoch: 1},
		},
	})
	p, err := people.New(people.Config{Control: unreachable{}, Apps: apps, Access: a, Activity: activity.New(activity.Config{Store: s}), Store: s})
	programs.Must(t, err)
	return p, s, a
}

// Weakness: a deny record does not say at which control plane somebody was
// removed; the change that is to be sent there does. With only the record left, the
// next control plane that is connected is told instead, answers that it knows
// nobody of that id, and the denial ends.
// Attack: the agent is killed between any two writes while somebody is removed, or
// while that is taken back, and is then connected elsewhere.
// Checked: whatever was written by then, there are both or neither, and the change
// waits for the control plane it belongs to.
func TestKilledWhileTakingAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var states [][]byte // of the file, after each commit
	keep := func(committing bool) {
		if committing {
			return
		}
		raw, err := os.ReadFile(filepath.Join(dir, store.FileName))
		if err != nil {
			t.Error(err)
		}
		states = append(states, raw)
	}
	p, _, _ := household(t, dir, "home", store.ObserveCommits(keep))
	states = states[len(states)-1:] // as it was before
	programs.Got(p.Remove(t.Context(), people.Owner, agentapi.RemoveRequest{AccountID: "bob", HoldSeconds: 10}))(t)
	programs.Got(p.TakeBack(agentapi.HeldChange{AccountID: "bob"}))(t)
	denials := 0
	for n, raw := range states {
		after := t.TempDir()
		programs.Must(t, os.WriteFile(filepath.Join(after, store.FileName), raw, 0o600))
		_, s, _ := household(t, after, "elsewhere")
		denied := programs.Got(s.DenyRecords())(t)
		pending := programs.Got(s.Pending())(t)
		if len(denied) != len(pending) || len(pending) == 1 && pending[0].Computer != "home" {
			t.Errorf("after %d commits: denied %+v, to be sent %+v", n, denied, pending)
		}
		denials += len(denied)
	}
	if len(states) < 3 || denials == 0 {
		t.Errorf("%d states, %d with a denial", len(states), denials)
	}
}

// Weakness: a change that waits for the disk keeps the next one from taking access away.
// Attack: remove somebody while the removal of somebody else has been at the disk for a
// while.
// Checked: what was open to them is closed before the disk answers.
func TestRemovalDoesNotWaitForAnother(t *testing.T) {
	t.Parallel()
	var hangs atomic.Bool
	atDisk, goOn := make(chan struct{}), make(chan struct{})
	p, _, a := household(t, t.TempDir(), "home", store.ObserveCommits(func(committing bool) {
		if committing && hangs.CompareAndSwap(true, false) {
			close(atDisk)
			<-goOn
		}
	}))
	bob := access.Identity{AccountID: "bob", Epoch: 1}
	cut := make(chan struct{})
	d, leave := a.Enter(bob, "", func() { close(cut) })
	if !d.Allowed {
		t.Fatal(d)
	}
	defer leave()
	hangs.Store(true)
	done := make(chan error, 2)
	remove := func(account string) {
		_, err := p.Remove(t.Context(), people.Owner, agentapi.RemoveRequest{AccountID: account, HoldSeconds: 10})
		done <- err
	}
	go remove("ann")
	<-atDisk
	go remove("bob")
	select {
	case <-cut:
	case <-time.After(programs.Patience):
		t.Error("what is open to him waits for the other removal")
	}
	if d := a.Decide(bob, ""); d.Allowed {
		t.Errorf("he may come in again: %+v", d)
	}
	close(goOn)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

package people

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// Weakness: a control plane that asked to be left alone is asked again by everything that
// wakes Run. Checked: snapshots, changes and clicks meanwhile send it nothing, while what
// they take away is closed here; then it is told of all that, and what is taken away
// while it refuses nobody is told at once.
func TestLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const alone = 30 * time.Second
		m := newHoldMachine(t)
		defer m.close()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.people.Run(ctx) }()
		synctest.Wait()
		withdraw := func(label string) {
			t.Helper()
			programs.Got(m.people.SetAccess(ctx, Owner, agentapi.AccessRequest{AccountID: bob, App: label}))(t)
			synctest.Wait()
			if d := m.access.Decide(access.Identity{AccountID: bob, Epoch: 1}, m.ids[label]); d.Allowed {
				t.Errorf("%s is open, though it was taken away", label)
			}
		}
		m.control.asked.Store(0)
		m.control.busy = time.Now().Add(alone)
		withdraw("Notes")
		for n := range 10 {
			time.Sleep(alone / 20)
			m.access.SetSnapshot(controlapi.Snapshot{
				Version: time.Now().String(), Computer: controlapi.Computer{ID: "c1", Name: "maya"}, People: []controlapi.Person{m.control.row},
			})
			m.changes.Raise()
			synctest.Wait()
			if n == 5 {
				withdraw("Wiki")
			}
		}
		if asked := m.control.asked.Load(); asked != 1 {
			t.Errorf("it was asked %d times while it wanted to be left alone", asked-1)
		}
		time.Sleep(2 * alone)
		synctest.Wait()
		if len(m.control.row.Apps) != 0 {
			t.Error("it was not told afterwards")
		}
		if _, err := m.people.Remove(ctx, Owner, agentapi.RemoveRequest{AccountID: bob}); err != nil || m.control.row.Status != controlapi.PersonRemoved {
			t.Errorf("it was not told at once: %v", err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

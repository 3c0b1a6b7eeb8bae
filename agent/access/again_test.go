package access_test

import (
	"testing"

	"porchlight/agent/access"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// TestInvitedAgain: somebody was removed here and has accepted a fresh
// invitation. Their browser still has a session of before; it has to sign in
// again, and is not told no for good, neither before the snapshot says that they
// accepted nor before the deny record of the removal is lifted.
func TestInvitedAgain(t *testing.T) {
	t.Parallel()
	a, _ := open(t, t.TempDir(), newClock())
	a.SetSnapshot(snapshot(nil))
	before, now := access.Identity{AccountID: bob, Epoch: 1}, access.Identity{AccountID: bob, Epoch: 2}
	removal := store.DenyRecord{AccountID: bob}
	if _, err := a.Deny(removal); err != nil {
		t.Fatal(err)
	}
	a.SetSnapshot(snapshot(func(p []controlapi.Person) { p[1].Epoch, p[1].Status = 2, controlapi.PersonPending }))
	if d := a.Decide(before, notes); d.Reason != access.ReasonDenied {
		t.Errorf("while the removal stands: %+v", d)
	}
	if err := a.GiveBack(store.PendingChange{AccountID: bob}); err != nil {
		t.Fatal(err)
	}
	if d := a.Decide(before, notes); d.Reason != access.ReasonSessionOver {
		t.Errorf("a session of before: %+v", d)
	}
	if d := a.Decide(now, notes); d.Reason != access.ReasonNotActive {
		t.Errorf("not accepted yet: %+v", d)
	}
	if d := a.Decide(access.Identity{AccountID: bob, Epoch: 1, GrantID: "g1"}, notes); d.Reason != access.ReasonNotActive {
		t.Errorf("a token: %+v", d)
	}

	// Accepted, and the record is lifted a moment after the snapshot came.
	if _, err := a.Deny(removal); err != nil {
		t.Fatal(err)
	}
	a.SetSnapshot(snapshot(func(p []controlapi.Person) { p[1].Epoch = 2 }))
	got := make(chan access.Decision)
	go func() { got <- a.AwaitAllowed(t.Context(), now, notes) }()
	if err := a.GiveBack(store.PendingChange{AccountID: bob}); err != nil {
		t.Fatal(err)
	}
	if d := <-got; !d.Allowed {
		t.Errorf("after the record was lifted: %+v", d)
	}
}

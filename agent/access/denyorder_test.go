package access_test

import (
	"testing"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/store"
)

// Weakness: a denial is stored and then decides, and the same when it is taken
// back; two at once may be stored in one order and decide in the other.
// Attack: deny somebody again in the moment after the end of the first denial was
// stored, and before that decides.
// Checked: what decides is what a restart would find.
func TestWhatIsStoredLastDecides(t *testing.T) {
	t.Parallel()
	c := newClock()
	stored := func(bool) {}
	db, err := store.Open(t.TempDir(), store.ObserveCommits(func(committing bool) { stored(committing) }))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	a, err := access.New(access.Config{Store: db, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	a.SetSnapshot(snapshot(nil))
	record := store.DenyRecord{AccountID: bob}
	if _, err := a.Deny(record); err != nil {
		t.Fatal(err)
	}
	again := make(chan error, 1)
	stored = func(committing bool) {
		if committing {
			return
		}
		stored = func(bool) {}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err := a.Deny(record)
			again <- err
		}()
		select { // it has to wait until the first has ended; a moment shows that it does
		case <-done:
		case <-time.After(50 * time.Millisecond):
		}
	}
	if err := a.GiveBack(store.PendingChange{AccountID: bob}); err != nil {
		t.Fatal(err)
	}
	if err := <-again; err != nil {
		t.Fatal(err)
	}
	kept, err := db.DenyRecords()
	if err != nil || len(kept) != 1 {
		t.Fatalf("stored: %+v, %v", kept, err)
	}
	if d := a.Decide(access.Identity{AccountID: bob, Epoch: 1}, notes); d.Reason != access.ReasonDenied {
		t.Errorf("he is denied, and opens it: %+v", d)
	}
}

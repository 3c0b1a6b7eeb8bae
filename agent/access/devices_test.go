package access_test

import (
	"sync/atomic"
	"testing"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// device is one of bob's, for notes.
func device(id string, since, notAfter time.Time) store.Device {
	digest := make([]byte, 32)
	copy(digest, id)
	return store.Device{ID: id, AccountID: bob, Apps: []string{notes}, Digest: digest, Since: since, NotAfter: notAfter}
}

func anyway([]store.Device) error { return nil }

// Weakness: a disk that answers late, or not at all, keeps a certificate good.
// Attack: revoke it while another change, a new certificate for one, is at the disk.
// Checked: what was open is closed and nothing opens, before the disk answers and after it.
func TestADeviceEndsBeforeTheDiskAnswers(t *testing.T) {
	t.Parallel()
	since := newClock().now().Add(-time.Hour)
	joined := snapshot(func(all []controlapi.Person) { all[1].Since = since })
	another := device("another", since, since.Add(24*time.Hour))
	for before, other := range map[string]func(*access.Access) error{
		"a denial":            func(a *access.Access) error { _, err := a.Deny(store.DenyRecord{GrantID: "g"}); return err },
		"a snapshot":          func(a *access.Access) error { a.SetSnapshot(joined); return nil },
		"another certificate": func(a *access.Access) error { return a.AddDevice(another, anyway) },
	} {
		t.Run(before, func(t *testing.T) {
			t.Parallel()
			var hangs atomic.Bool
			atDisk, goOn := make(chan struct{}), make(chan struct{})
			db := openStore(t, t.TempDir(), store.ObserveCommits(func(committing bool) {
				if committing && hangs.CompareAndSwap(true, false) {
					close(atDisk)
					<-goOn
				}
			}))
			a := newAccess(t, access.Config{Store: db, Now: newClock().now})
			a.SetSnapshot(joined)
			lost := device("lost", since, since.Add(24*time.Hour))
			programs.Must(t, a.AddDevice(lost, anyway))
			id, ok := a.Device([32]byte(lost.Digest), notes)
			if !ok {
				t.Fatal("it opens nothing")
			}
			cut := make(chan struct{})
			d, leave := a.Enter(id, notes, func() { close(cut) })
			if !d.Allowed {
				t.Fatal(d)
			}
			defer leave()
			hangs.Store(true)
			done := make(chan error, 2)
			go func() { done <- other(a) }()
			<-atDisk
			go func() {
				_, _, err := a.EndDevices(func(d store.Device) bool { return d.ID == "lost" })
				done <- err
			}()
			select {
			case <-cut:
			case <-time.After(programs.Patience / 10):
				t.Error("what is open waits for the disk")
			}
			if _, ok := a.Device([32]byte(lost.Digest), notes); ok {
				t.Error("it may come in again")
			}
			close(goOn)
			for range 2 {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			_, again := a.Device([32]byte(lost.Digest), notes)
			_, theOther := a.Device([32]byte(another.Digest), notes)
			kept := programs.Got(db.Devices())(t)
			if again || theOther != (before == "another certificate") || len(kept) != len(a.Devices()) {
				t.Errorf("afterwards: the lost one %t, another %t, kept are %+v", again, theOther, kept)
			}
		})
	}
}

// Weakness: an app is given anew so soon after its end that no snapshot says it had ended, and
// a certificate for it counts again, as no app password does.
// Checked: it is over; one whose share was prolonged in time is not.
func TestADeviceEndsWithWhatIsGivenAnewAtOnce(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"prolonged": false, "given anew": true} {
		clock := newClock()
		began := clock.now()
		given := func(until time.Time) controlapi.Snapshot {
			return snapshot(func(all []controlapi.Person) {
				all[1].Since, all[1].Until = began, map[string]time.Time{notes: until}
			})
		}
		a := newAccess(t, access.Config{
			Store: openStore(t, t.TempDir()), Now: clock.now, SinceBoot: func() time.Duration { return clock.now().Sub(began) },
		})
		a.SetClockAhead(time.Until(began))
		a.SetSnapshot(given(began.Add(time.Hour)))
		d := device("phone", began, began.Add(24*time.Hour))
		programs.Must(t, a.AddDevice(d, anyway))
		clock.advance(50 * time.Minute)
		if late {
			clock.advance(20 * time.Minute)
		}
		a.SetSnapshot(given(began.Add(3 * time.Hour)))
		if id, ok := a.Device([32]byte(d.Digest), notes); ok == late || ok && !a.Decide(id, notes).Allowed {
			t.Errorf("%s: it opens the app: %t", name, ok)
		}
	}
}

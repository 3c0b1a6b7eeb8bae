package access_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"porchlight/agent/devices"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
	"porchlight/test/programs"
)

// As many app passwords as a computer has at most are each looked up as one is, at no cost
// of memory, and are a small part of what a snapshot may be.
func TestAsManyKeysAsThereMayBe(t *testing.T) {
	a, _ := open(t, t.TempDir(), newClock())
	s := snapshot(nil)
	key := func(i int) []byte { return fmt.Appendf(nil, "plp_%032d", i) }
	for i := range controlapi.MaxPasswordsComputer {
		s.Passwords = append(s.Passwords, row(fmt.Sprint(strings.Repeat("p", 32), i), bob, notes, string(key(i))))
	}
	raw, err := json.Marshal(s)
	if err != nil || len(raw) > tunnelwire.MaxSnapshot/16 {
		t.Errorf("the snapshot has %d bytes, %v", len(raw), err)
	}
	a.SetSnapshot(s)
	for i := range controlapi.MaxPasswordsComputer {
		id, err := a.Key(key(i), notes)
		if d := a.Decide(id, notes); err != nil || !d.Allowed {
			t.Fatalf("key %d: %+v, %v", i, d, err)
		}
	}
	last := key(controlapi.MaxPasswordsComputer - 1)
	if allocs := testing.AllocsPerRun(100, func() {
		if id, err := a.Key(last, notes); err != nil || !a.Decide(id, notes).Allowed {
			t.Error("the last is refused")
		}
	}); allocs > 0 {
		t.Errorf("looking one up allocates %v times", allocs)
	}
	if _, err := a.Key(key(controlapi.MaxPasswordsComputer), notes); err == nil {
		t.Error("one more is taken")
	}
}

// As many certificates as a computer has at most are each looked up as one is, at no cost of
// memory; they are in no snapshot, and not much on the disk.
func TestAsManyCertificatesAsThereMayBe(t *testing.T) {
	clock := newClock()
	a, db := open(t, t.TempDir(), clock)
	since := clock.now().Add(-time.Hour)
	s := snapshot(func(all []controlapi.Person) { all[1].Since = since })
	a.SetSnapshot(s)
	last := [32]byte{}
	for i := range devices.Most {
		d := device(fmt.Sprintf("%026d", i), since, clock.now().Add(devices.Life))
		programs.Must(t, a.AddDevice(d, anyway))
		last = [32]byte(d.Digest)
		if id, ok := a.Device(last, notes); !ok || !a.Decide(id, notes).Allowed {
			t.Fatalf("certificate %d is refused", i)
		}
	}
	a.SetSnapshot(s)
	if allocs := testing.AllocsPerRun(100, func() {
		if id, ok := a.Device(last, notes); !ok || !a.Decide(id, notes).Allowed {
			t.Error("the last is refused")
		}
	}); allocs > 0 {
		t.Errorf("looking one up allocates %v times", allocs)
	}
	kept := programs.Got(db.Devices())(t)
	raw := programs.Got(json.Marshal(kept))(t)
	if len(kept) != devices.Most || len(raw) > 64<<10 {
		t.Errorf("%d are kept in %d bytes", len(kept), len(raw))
	}
	if _, _, err := a.EndDevices(func(store.Device) bool { return true }); err != nil || a.HasDevices(notes) {
		t.Errorf("all were ended: %v, and some are left: %t", err, a.HasDevices(notes))
	}
}

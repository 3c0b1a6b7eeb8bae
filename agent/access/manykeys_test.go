package access_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
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

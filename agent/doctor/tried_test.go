package doctor

import (
	"errors"
	"testing"

	"porchlight/agent/agentapi"
)

// TestTroubleIsTriedAtOnce: who looks while something is wrong has it tried without its
// wait; while all is well nothing is disturbed.
func TestTroubleIsTriedAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state agentapi.OwnerState
		woken int
	}{
		{agentapi.OwnerState{Reachable: true}, 0},
		{agentapi.OwnerState{}, 1},
		{agentapi.OwnerState{Reachable: true, Trouble: "Browsers cannot open it."}, 1},
	} {
		woken := 0
		tries := NewTries(TriesConfig{
			Wake:        func() { woken++ },
			Authorities: func() (Authorities, error) { return Authorities{}, errors.New("that is all here") },
		})
		if _, err := tries.Everything(t.Context(), c.state); err == nil || woken != c.woken {
			t.Errorf("%+v: woken %d times, %v", c.state, woken, err)
		}
	}
}

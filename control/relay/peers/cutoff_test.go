package peers

import (
	"testing"
	"time"
)

// nodeSilence is after how long of it a node is gone.
const nodeSilence = silentFor

// Silence counts in rounds in a row and in time.
func TestSilence(t *testing.T) {
	t.Parallel()
	var s silence
	start := time.Now()
	for i, c := range []struct {
		silent bool
		at     time.Duration
		cut    bool
	}{
		{true, 0, false}, {true, nodeSilence, false}, {true, nodeSilence, true}, {true, nodeSilence, true},
		{false, nodeSilence, false}, {true, nodeSilence, false}, {true, 2*nodeSilence - 1, false},
		{true, 2*nodeSilence - 1, false}, {true, 2 * nodeSilence, true},
	} {
		if got := s.note(c.silent, start.Add(c.at)); got != c.cut {
			t.Errorf("round %d: %v", i, got)
		}
	}
}

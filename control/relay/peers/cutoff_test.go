package peers

import (
	"testing"
	"time"
)

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
		{true, 0, false}, {true, silentFor, false}, {true, silentFor, true}, {true, silentFor, true},
		{false, silentFor, false}, {true, silentFor, false}, {true, 2*silentFor - 1, false},
		{true, 2*silentFor - 1, false}, {true, 2 * silentFor, true},
	} {
		if got := s.note(c.silent, start.Add(c.at)); got != c.cut {
			t.Errorf("round %d: %v", i, got)
		}
	}
}

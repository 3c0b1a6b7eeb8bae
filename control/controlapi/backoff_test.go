package controlapi_test

import (
	"testing"
	"time"

	"porchlight/control/controlapi"
)

// However often asking failed, the next time is neither at once nor after more than half
// a minute and a moment.
func TestBackoff(t *testing.T) {
	t.Parallel()
	for failures, most := range map[int]time.Duration{1: 500 * time.Millisecond, 4: 4 * time.Second, 8: 31 * time.Second, 1 << 40: 31 * time.Second} {
		for range 1000 {
			if wait := controlapi.Backoff(failures); wait < 100*time.Millisecond || wait > most {
				t.Errorf("after %d failures: %v", failures, wait)
			}
		}
	}
}

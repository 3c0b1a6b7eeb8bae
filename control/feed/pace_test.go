package feed

import (
	"fmt"
	"testing"
	"time"
)

func TestPaceIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	p := NewPace(func() time.Time { return now })
	for i := range 3 * paceSize {
		hash, network := fmt.Sprint("hash", i), fmt.Sprint("network", i)
		p.enter(now, hash, network, i%3 == 0)
		p.note(now, hash, network, i%3 == 0, true, i%2 == 0)
		if len(p.computers) > paceSize {
			t.Fatalf("%d computers are remembered", len(p.computers))
		}
	}
}

package http2

import (
	"testing"
	"testing/synctest"
	"time"
)

// Weakness: a hundred visitors who came at once each woke the processor a minute later,
// by the deadline of what was written last. Checked: who begins to wait within some
// seconds waits until one moment, and never for longer than was said.
func TestTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		moments := map[time.Time]bool{}
		for range 100 {
			wait := together(time.Minute)
			if wait > time.Minute || wait < 55*time.Second {
				t.Errorf("waits for %v", wait)
			}
			moments[time.Now().Add(wait)] = true
			time.Sleep(40 * time.Millisecond)
		}
		if len(moments) != 1 {
			t.Errorf("they wake up at %d moments", len(moments))
		}
	})
}

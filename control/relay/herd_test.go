package relay

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Checked: memory is given back once, when many have come and few come any more; not for a few,
// and not again within a minute.
func TestMemoryIsGivenBackAfterAHerd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var times atomic.Int64
		h := herd{giveBack: func() { times.Add(1) }}
		comes := func(n int, then time.Duration, want int64) {
			t.Helper()
			for range n {
				h.another()
			}
			time.Sleep(then)
			synctest.Wait()
			if got := times.Load(); got != want {
				t.Fatalf("given back %d times, want %d", got, want)
			}
		}
		comes(herdOf-1, time.Hour, 0)
		comes(1, herdRests-1, 0)
		comes(herdOf/10, herdRests, 0) // it still comes
		comes(herdOf/10-1, herdRests, 1)
		comes(herdOf, giveBackEvery-herdRests, 1)
		comes(0, time.Hour, 2)
	})
}

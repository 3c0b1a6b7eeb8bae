package proxy

import (
	"testing"
	"testing/synctest"
	"time"
)

// A visit is watched once it has lasted for a moment, and none that is over by then, whose
// memory may be another's.
func TestOnlyVisitsThatLastAreWatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w waits
		watched := func(v *visit) bool { v.mu.Lock(); defer v.mu.Unlock(); return v.known }
		lasts, over := &visit{parent: t.Context(), open: true}, &visit{parent: t.Context(), open: true}
		w.add(lasts)
		w.add(over)
		time.Sleep(moment + moment/2)
		if w.remove(over); watched(lasts) {
			t.Error("a visit is watched before a moment is over")
		}
		time.Sleep(moment)
		if synctest.Wait(); !watched(lasts) || watched(over) {
			t.Errorf("watched: one that lasts %v, one that is over %v", watched(lasts), watched(over))
		}
		lasts.finish()
	})
}

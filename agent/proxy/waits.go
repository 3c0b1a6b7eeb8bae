package proxy

import (
	"sync"
	"time"
)

// A visit that lasts needs to be told when its visitor leaves, and a page that loads
// has a limit to its patience. To ask for both costs more than all else about a visit
// that does not last, so it is done for those that have lasted for a moment: event
// streams, long polls, slow apps.

// moment is how long a visit lasts, at least, before it is settled; at most twice that.
const moment = 100 * time.Millisecond

// waits are the visits that have not lasted for a moment. It costs nothing while there
// are none.
type waits struct {
	mu    sync.Mutex
	new   map[*visit]struct{} // since the last tick; guarded by mu
	old   map[*visit]struct{} // since the one before; guarded by mu
	timer *time.Timer         // nil before the first visit; guarded by mu
	runs  bool                // the timer does; guarded by mu
}

func (w *waits) add(v *visit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		w.new, w.old = map[*visit]struct{}{}, map[*visit]struct{}{}
		w.timer = time.AfterFunc(moment, w.tick)
	} else if !w.runs {
		w.timer.Reset(moment)
	}
	w.runs = true
	w.new[v] = struct{}{}
}

// remove forgets a visit that is over; one that was settled is forgotten already.
func (w *waits) remove(v *visit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.new, v)
	delete(w.old, v)
}

// tick settles those that were here when it was called last.
func (w *waits) tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for v := range w.old {
		v.watch(moment) // while mu is held: whoever removes it now waits, and it is not used again before
	}
	clear(w.old)
	w.new, w.old = w.old, w.new
	if w.runs = len(w.old) > 0; w.runs {
		w.timer.Reset(moment)
	}
}

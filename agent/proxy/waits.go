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
	mu             sync.Mutex
	oldest, newest *visit
	round          uint64      // how often timer has fired
	timer          *time.Timer // nil before the first visit
	running        bool        // the timer is
}

// wait is a visit's place in waits, whose mu guards it.
type wait struct {
	listed       bool
	round        uint64 // when it was added
	older, newer *visit
}

func (w *waits) add(v *visit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v.wait = wait{listed: true, round: w.round, older: w.newest}
	if w.newest != nil {
		w.newest.wait.newer = v
	} else {
		w.oldest = v
	}
	w.newest = v
	if w.running {
		return
	}
	w.running = true
	if w.timer == nil {
		w.timer = time.AfterFunc(moment, w.tick)
	} else {
		w.timer.Reset(moment)
	}
}

// remove forgets a visit that is over; one that was settled is forgotten already.
func (w *waits) remove(v *visit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v.wait.listed {
		w.unlink(v)
	}
}

// unlink is remove. mu is held.
func (w *waits) unlink(v *visit) {
	if v.wait.older != nil {
		v.wait.older.wait.newer = v.wait.newer
	} else {
		w.oldest = v.wait.newer
	}
	if v.wait.newer != nil {
		v.wait.newer.wait.older = v.wait.older
	} else {
		w.newest = v.wait.older
	}
	v.wait = wait{}
}

// tick settles those that were here when it was called last.
func (w *waits) tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.round++
	for v := w.oldest; v != nil && v.wait.round+1 < w.round; v = w.oldest {
		w.unlink(v)
		v.watch(moment) // while mu is held: whoever removes it now waits, and it is not used again before
	}
	if w.running = w.oldest != nil; w.running {
		w.timer.Reset(moment)
	}
}

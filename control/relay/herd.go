package relay

import (
	"sync"
	"time"
)

const (
	// herdOf is how many tunnels make a herd, and herdRests how long fewer than a tenth of
	// them come when it has arrived.
	herdOf    = 500
	herdRests = 10 * time.Second
	// giveBackEvery bounds how often memory is given back, whoever comes and goes.
	giveBackEvery = time.Minute
)

// herd has the memory that many tunnels took by coming, and do not need for being there,
// given back to the system: Go keeps it for garbage, of which computers that sleep make
// little. Strangers are not counted.
type herd struct {
	giveBack func()

	mu      sync.Mutex // protects what follows
	came    int        // tunnels since the last look
	watched bool       // look is called soon
	next    time.Time  // not before that memory is given back
}

// another counts a tunnel that came.
func (h *herd) another() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.came++; h.came >= herdOf && !h.watched {
		h.watch()
	}
}

// watch has look be called. mu is held.
func (h *herd) watch() {
	h.came, h.watched = 0, true
	time.AfterFunc(max(herdRests, time.Until(h.next)), h.look)
}

// look gives memory back unless the herd still comes.
func (h *herd) look() {
	if h.arrived() {
		h.giveBack()
	}
}

func (h *herd) arrived() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.came >= herdOf/10 {
		h.watch()
		return false
	}
	h.came, h.watched, h.next = 0, false, time.Now().Add(giveBackEvery)
	return true
}

package feed

import (
	"sync"
	"time"

	"porchlight/internal/bounds"
)

// Hints are what this node remembers of credentials that were good, so that what goes
// with one is asked for in the same round trip as the credential itself. Nothing is
// decided by a hint: the credential's row is read each time, and a wrong or missing
// hint costs a round trip.
type Hints struct {
	mu     sync.Mutex
	byHash map[string]hint // guarded by mu
}

type hint struct {
	computer string // whose it is, which never changes
	at       time.Time
}

// Get is whose the credential with this hash was.
func (h *Hints) Get(hash string) (computerID string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	found, ok := h.byHash[hash]
	return found.computer, ok
}

// Learn keeps what was found, at this time, with a credential. One that is refused is forgotten.
func (h *Hints) Learn(hash, computerID string, now time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, known := h.byHash[hash]
	switch {
	case err != nil:
		if known && isUnknown(err) {
			delete(h.byHash, hash)
		}
		return
	case h.byHash == nil:
		h.byHash = map[string]hint{}
	case !known:
		bounds.MakeRoom(h.byHash, paceSize, func(old hint) bool { return now.Sub(old.at) > keptFor })
	}
	h.byHash[hash] = hint{computer: computerID, at: now}
}

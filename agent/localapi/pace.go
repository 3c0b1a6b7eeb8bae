package localapi

import (
	"net/http"
	"sync"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/people"
)

// How often programs may ask. Changes of who may come in are paced for every
// program, so that a bad one cannot bury what it did; what else changes something,
// for other users' programs alone.
var (
	paceStranger = bucket{200, 50 * time.Millisecond} // requests of one user
	paceProgram  = bucket{30, 2 * time.Second}        // changes of one process
	pacePrograms = bucket{60, time.Second}            // and of all
)

// allPrograms is the key of pacePrograms, which is never forgotten for another.
const allPrograms = "all programs"

// maxPaced bounds whom paces remembers.
const maxPaced = 1024

// bucket holds size requests and gets one more every refill.
type bucket struct {
	size   int
	refill time.Duration
}

// take keeps, instead of a count, the time at which the bucket is full again. wait
// is how long until the next request is free; full is then unchanged.
func (b bucket) take(now, full time.Time) (after time.Time, wait time.Duration) {
	depth := time.Duration(b.size) * b.refill
	if full.Before(now) || full.Sub(now) > 2*depth { // the latter by a clock that was set back
		full = now
	}
	after = full.Add(b.refill)
	if wait = after.Sub(now) - depth; wait > 0 {
		return full, wait
	}
	return after, 0
}

// paces are the buckets in use. It is safe for concurrent use.
type paces struct {
	mu   sync.Mutex
	full map[string]time.Time // guarded by mu: when each is full again
}

// take takes one from the bucket of each key, or from none and says how long to
// wait.
func (p *paces) take(now time.Time, of map[string]bucket) (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := make(map[string]time.Time, len(of))
	for key, b := range of {
		after, w := b.take(now, p.full[key])
		next[key], wait = after, max(wait, w)
	}
	if wait > 0 {
		return wait
	}
	if p.full == nil || len(p.full)+len(of) > maxPaced {
		p.forget(now)
	}
	for key, after := range next {
		p.full[key] = after
	}
	return 0
}

// forget makes room: the buckets that are full again go, then any.
func (p *paces) forget(now time.Time) {
	kept := make(map[string]time.Time, maxPaced)
	for key, full := range p.full {
		if full.After(now) && (len(kept) < maxPaced/2 || key == allPrograms) {
			kept[key] = full
		}
	}
	p.full = kept
}

// slow paces what programs of other users change.
func (a *API) slow(r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	by := a.callerOf(r)
	if !by.Stranger {
		return nil
	}
	wait := a.paces.take(time.Now(), map[string]bucket{"user " + by.UserID: paceStranger})
	if wait == 0 {
		return nil
	}
	return &agentapi.Error{
		Code: agentapi.CodeTooMany, RetryAfter: wait,
		Message: "Programs of your user ask Porchlight for too much at once. Wait a moment and try again.",
	}
}

// slowChange paces how often programs change who may come in.
func (a *API) slowChange(by people.Actor) error {
	wait := a.paces.take(time.Now(), map[string]bucket{"program " + by.Process: paceProgram, allPrograms: pacePrograms})
	if wait == 0 {
		return nil
	}
	return &agentapi.Error{
		Code: agentapi.CodeTooMany, RetryAfter: wait,
		Message: "Programs change who may come in too often. Wait a moment and try again.",
	}
}

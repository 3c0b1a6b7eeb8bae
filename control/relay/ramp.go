package relay

import (
	"net/netip"
	"sync"
	"time"

	"porchlight/internal/bounds"
)

// ramp says how many agents may connect now. It is a token bucket whose rate grows
// from a tenth of full to full while the first rampUp passes, and one such bucket
// for each source, so that nobody uses up what is for all: to ask is to send the
// first bytes of a handshake, which anybody can.
type ramp struct {
	full, perSource float64 // tokens per second
	rampUp          time.Duration
	now             func() time.Time

	mu      sync.Mutex // protects what follows
	started time.Time
	all     bucket
	sources map[netip.Prefix]bucket // those that are not full
}

type bucket struct {
	tokens float64
	last   time.Time
}

// rampSources bounds the sources remembered.
const rampSources = 16 << 10

// fullAgain is after how long an unused bucket is full again: a tenth comes back each
// second even at the start of the ramp.
const fullAgain = 10 * time.Second

func newRamp(perSecond, perSource int, rampUp time.Duration, now func() time.Time) *ramp {
	return &ramp{
		full: float64(perSecond), perSource: float64(min(perSource, perSecond)), rampUp: rampUp,
		now: now, sources: make(map[netip.Prefix]bucket),
	}
}

// allow reports whether one more from source may come in now.
func (r *ramp) allow(source netip.Prefix) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if r.started.IsZero() {
		r.started = now
	}
	share := min(1, 0.1+0.9*float64(max(0, now.Sub(r.started)))/float64(r.rampUp))
	rate := max(r.full*share, 1)
	// An office with many computers has them all back at once, if there is room:
	// what a source saves up does not begin at a tenth.
	most := r.perSource
	if r.perSource < r.full {
		most = max(min(most, rate/2), 1)
	}
	theirs, known := r.sources[source]
	if !known {
		theirs = bucket{tokens: most, last: now}
	}
	if r.all.last.IsZero() {
		r.all = bucket{tokens: rate, last: now}
	}
	// Sources that came just now leave a quarter for those that did not: otherwise
	// as many as make up the rate with their shares would keep all others away.
	spared := 0.0
	if known && now.Sub(theirs.last) < fullAgain && r.perSource < r.full {
		spared = min(rate/4, rate-1)
	}
	r.all.fill(rate, rate, now)
	theirs.fill(r.perSource*share, most, now)
	if r.all.tokens < 1+spared || theirs.tokens < 1 {
		return false // and theirs fills as if it had not been looked at
	}
	r.all.tokens--
	theirs.tokens--
	if !known {
		bounds.MakeRoom(r.sources, rampSources, func(b bucket) bool { return now.Sub(b.last) >= fullAgain })
	}
	r.sources[source] = theirs
	return true
}

// fill adds what rate has given since the last time, in tokens per second, up to
// most.
func (b *bucket) fill(rate, most float64, now time.Time) {
	if elapsed := now.Sub(b.last); elapsed > 0 {
		b.tokens = min(most, b.tokens+rate*elapsed.Seconds())
		b.last = now
	}
}

package relay

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"porchlight/control/controlapi/tunnelwire"
)

// admittedFor is how long a computer that let a visitor in remembers the source.
const admittedFor = 24 * time.Hour

// admitted are the sources whose visitors one computer has let in lately, as its
// agent says: the relay cannot tell who is behind the TLS. While there are any, a
// quarter of the computer's places is theirs alone, so that strangers, from
// however many addresses, leave room for those who have been here.
type admitted struct {
	mu      sync.Mutex // protects what follows
	last    time.Time
	sources map[netip.Prefix]time.Time // when each was let in last; nil before the first
}

// note remembers source, and forgets the one that was let in longest ago where
// that makes too many.
func (k *admitted) note(source netip.Prefix, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sources == nil {
		k.sources = make(map[netip.Prefix]time.Time)
	}
	k.last, k.sources[source] = now, now
	if len(k.sources) > tunnelwire.MaxAddresses {
		byTime := func(a, b netip.Prefix) int { return k.sources[a].Compare(k.sources[b]) }
		delete(k.sources, slices.MinFunc(slices.Collect(maps.Keys(k.sources)), byTime))
	}
}

// spared is how many of total places source may not have.
func (k *admitted) spared(source netip.Prefix, total int, now time.Time) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	lately := func(at time.Time) bool { return now.Sub(at) < admittedFor }
	if !lately(k.last) || lately(k.sources[source]) {
		return 0
	}
	return total / 4
}

func (k *admitted) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.sources)
}

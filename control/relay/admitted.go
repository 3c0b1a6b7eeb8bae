package relay

import (
	"container/list"
	"net/netip"
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
	order   list.List  // of admittedSource, the latest last
	sources map[netip.Prefix]*list.Element
}

type admittedSource struct {
	source netip.Prefix
	at     time.Time
}

// note remembers source, and forgets the one that was let in longest ago where
// that makes too many.
func (k *admitted) note(source netip.Prefix, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sources == nil {
		k.sources = make(map[netip.Prefix]*list.Element)
	}
	if e := k.sources[source]; e != nil {
		k.order.Remove(e)
	}
	k.sources[source] = k.order.PushBack(admittedSource{source, now})
	if k.order.Len() > tunnelwire.MaxAddresses {
		oldest := k.order.Remove(k.order.Front()).(admittedSource)
		delete(k.sources, oldest.source)
	}
}

// spared is how many of total places source may not have.
func (k *admitted) spared(source netip.Prefix, total int, now time.Time) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	lately := func(e *list.Element) bool {
		return e != nil && now.Sub(e.Value.(admittedSource).at) < admittedFor
	}
	if !lately(k.order.Back()) || lately(k.sources[source]) {
		return 0
	}
	return total / 4
}

func (k *admitted) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.order.Len()
}

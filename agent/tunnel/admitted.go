package tunnel

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"porchlight/control/controlapi/tunnelwire"
	"porchlight/internal/bounds"
	"porchlight/internal/broadcast"
)

const (
	// admittedFor is how long an address that was let in is told to relays that are
	// connected later.
	admittedFor = 24 * time.Hour
	// tellAgainAfter is how long a relay is not told of an address again.
	tellAgainAfter = time.Hour
)

// letIn notes that a visitor from addr was let in, and has the relays told: when
// strangers come in crowds they keep places for such addresses.
func (t *Tunnel) letIn(addr netip.Addr) {
	// One visitor has a whole /64 of IPv6, as the relays count: its many addresses
	// must not have all others forgotten.
	addr = bounds.Network(addr, 32, 64).Addr()
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	last, had := t.admitted[addr]
	if had && now.Sub(last) < tellAgainAfter {
		return
	}
	if !had && len(t.admitted) >= tunnelwire.MaxAddresses {
		byTime := func(a, b netip.Addr) int { return t.admitted[a].Compare(t.admitted[b]) }
		delete(t.admitted, slices.MinFunc(slices.Collect(maps.Keys(t.admitted)), byTime))
	}
	t.admitted[addr] = now
	for _, s := range t.sessions {
		if s != nil {
			s.tellOf(addr)
		}
	}
}

// letInLately are the addresses that a relay is told when it was just connected. mu
// is held.
func (t *Tunnel) letInLately() []netip.Addr {
	now := t.now()
	maps.DeleteFunc(t.admitted, func(_ netip.Addr, at time.Time) bool { return now.Sub(at) >= admittedFor })
	return slices.Collect(maps.Keys(t.admitted))
}

// tellOf has the relay told these addresses soon. The tunnel's mu is held.
func (s *session) tellOf(addrs ...netip.Addr) {
	s.untold = append(s.untold, addrs...)
	broadcast.Raise(s.news)
}

// tell tells the relay what it has not been told.
func (s *session) tell() error {
	s.tunnel.mu.Lock()
	untold := s.untold
	s.untold = nil
	s.tunnel.mu.Unlock()
	for addrs := range slices.Chunk(untold, tunnelwire.MaxAddresses) {
		if err := s.send(tunnelwire.Frame{Type: tunnelwire.Known, Addresses: addrs}); err != nil {
			return err
		}
	}
	return s.tellLost()
}

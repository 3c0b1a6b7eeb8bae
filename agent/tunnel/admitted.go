package tunnel

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"porchlight/control/controlapi/tunnelwire"
	"porchlight/internal/bounds"
)

const (
	// admittedFor is how long ago an address may have been let in of which a relay is
	// told when it is connected.
	admittedFor = 24 * time.Hour
	// knownAgain is how long a relay is not told of an address again.
	knownAgain = time.Hour
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
	if had && now.Sub(last) < knownAgain {
		return
	}
	if !had && len(t.admitted) >= tunnelwire.MaxAddresses {
		oldest := addr
		for a, at := range t.admitted {
			if oldest == addr || at.Before(t.admitted[oldest]) {
				oldest = a
			}
		}
		delete(t.admitted, oldest)
	}
	t.admitted[addr] = now
	for _, s := range t.sessions {
		if s != nil {
			s.tellOf(addr)
		}
	}
}

// knownLately are the addresses to tell a relay of that was just connected. The
// caller holds mu.
func (t *Tunnel) knownLately() []netip.Addr {
	now := t.now()
	maps.DeleteFunc(t.admitted, func(_ netip.Addr, at time.Time) bool { return now.Sub(at) >= admittedFor })
	return slices.Collect(maps.Keys(t.admitted))
}

// tellOf has the relay told of addresses soon. The caller holds the tunnel's mu.
func (s *session) tellOf(addrs ...netip.Addr) {
	s.untold = append(s.untold, addrs...)
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// tell tells the relay of the addresses it has not been told of.
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
	return nil
}

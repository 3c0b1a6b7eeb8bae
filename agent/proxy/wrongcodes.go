package proxy

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// A visitor needs no account to come back with a code that is none, and each costs
// the control plane a look, of which it allows this computer so many. So that one
// stranger does not use them up, and keeps everybody else from signing in, wrong
// codes count for the network they came from.
const (
	// wrongAtOnce codes of a network may be wrong at once, and one more every
	// wrongRefill.
	wrongAtOnce = 60
	wrongRefill = time.Second
	// wrongNetworks bounds the networks remembered.
	wrongNetworks = 4096
)

// wrongCodes is when the wrong codes of each network are forgotten.
type wrongCodes struct {
	mu       sync.Mutex
	networks map[netip.Prefix]time.Time // guarded by mu
}

// try notes a code of which nothing is known yet, and says whether it may be tried.
// takeBack is for one that was not wrong.
func (c *wrongCodes) try(from netip.Prefix, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	over := c.networks[from]
	if over.Before(now) || over.Sub(now) > wrongAtOnce*wrongRefill { // the latter by a clock that was set back
		over = now
	}
	if over = over.Add(wrongRefill); over.Sub(now) > wrongAtOnce*wrongRefill {
		return false
	}
	if c.networks == nil {
		c.networks = map[netip.Prefix]time.Time{}
	}
	if _, known := c.networks[from]; !known && len(c.networks) >= wrongNetworks {
		c.forget(now)
	}
	c.networks[from] = over
	return true
}

func (c *wrongCodes) takeBack(from netip.Prefix) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if over, known := c.networks[from]; known {
		c.networks[from] = over.Add(-wrongRefill)
	}
}

// forget makes room: the networks without wrong codes go, then any.
func (c *wrongCodes) forget(now time.Time) {
	for from, over := range c.networks {
		if !over.After(now) {
			delete(c.networks, from)
		}
	}
	for from := range c.networks {
		if len(c.networks) < wrongNetworks*9/10 {
			return
		}
		delete(c.networks, from)
	}
}

// networkOf is what one visitor easily has: an IPv4 address, or an IPv6 /48. It is
// the zero prefix for what is no address.
func networkOf(remote string) netip.Prefix {
	host, _, _ := net.SplitHostPort(remote)
	addr, _ := netip.ParseAddr(host)
	addr = addr.Unmap().WithZone("")
	bits := 32
	if addr.Is6() {
		bits = 48
	}
	network, _ := addr.Prefix(bits)
	return network
}

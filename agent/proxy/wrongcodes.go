package proxy

import (
	"net/netip"
	"time"

	"porchlight/internal/bounds"
)

// A visitor needs no account to come back with a code that is none, and each costs
// the control plane a look, of which it allows this computer so many. So that one
// stranger does not use them up, and keeps everybody else from signing in, wrong
// codes count for the network they came from. wrongNetworks bounds the networks
// remembered.
const wrongNetworks = 4096

var wrongCodes = bounds.Bucket{Size: 60, Refill: time.Second}

// networkOf is what one visitor easily has: an IPv4 address, or an IPv6 /48. It is
// the zero prefix for what is no address.
func networkOf(remote string) netip.Prefix {
	from, _ := netip.ParseAddrPort(remote)
	return bounds.Network(from.Addr(), 32, 48)
}

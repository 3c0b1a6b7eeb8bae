package proxy

import (
	"net/netip"
	"time"

	"porchlight/internal/bounds"
)

// Anybody can come back from signing in with a made-up code. Each costs one request
// to the control plane, which takes only so many from this computer. So that one
// stranger does not use them up and keep everybody else from signing in, wrong codes
// are counted by the network they came from. wrongNetworks bounds the networks
// remembered.
const wrongNetworks = 4096

var wrongCodes = bounds.Bucket{Size: 60, Refill: time.Second}

// networkOf is what one visitor easily has: an IPv4 address, or an IPv6 /48. It is
// the zero prefix for what is no address.
func networkOf(remote string) netip.Prefix {
	from, _ := netip.ParseAddrPort(remote)
	return bounds.Network(from.Addr(), 32, 48)
}

// Nobody finds one of 160 random bits by trying, and to look one up costs next to
// nothing. So a right one always passes, whoever tries wrong ones beside it; wrong ones
// are counted by the network they came from, so that a program that has one is told to
// slow down.
var wrongPasswords = bounds.Bucket{Size: 60, Refill: time.Second}

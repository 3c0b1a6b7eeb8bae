package procinfo

import "net/netip"

// Bound is a TCP socket of this computer that takes connections, and the address it
// takes them at.
type Bound struct {
	At netip.AddrPort // without a zone; IPv4 inside IPv6 is IPv4
	Socket
}

// AllBound are all of them, in no order, as the system shows them to the current
// user. Nothing is sent to anybody.
func AllBound() []Bound { return allBound() }

// Reaches says whether a connection to one of the two addresses of this computer can
// arrive at the socket, and how exactly: of two, the one with the larger number takes
// it. 0 is no.
func (b Bound) Reaches(address netip.Addr) int {
	switch at := b.At.Addr(); {
	case at == address:
		return 3
	case at.IsUnspecified() && at.Is4() && address.Is4():
		return 2
	case at.IsUnspecified() && at.Is6():
		return 1
	}
	return 0
}

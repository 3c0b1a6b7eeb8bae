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
	return rank(b.At.Addr(), address)
}

// rank is 0 for a listener that does not take connections to an address. Tables of sockets
// do not say whether one on [::] takes IPv4 too, as most do: it counts for both, and a
// connection that is refused all the same shows that it did not.
func rank(listens, to netip.Addr) int {
	switch {
	case listens == to:
		return 3
	case listens == netip.IPv4Unspecified() && to.Is4():
		return 2
	case listens == netip.IPv6Unspecified():
		return 1
	}
	return 0
}

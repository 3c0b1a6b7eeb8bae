package update

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"syscall"

	"porchlight/internal/words"
)

// What an operator names is a stranger's to this computer: it is asked on the internet
// alone, so that nobody reaches by it what listens here or in the owner's own network.

// errOwnNetwork is about an address of the operator's that leads to no public one.
var errOwnNetwork = words.Errorf("the address leads into your own network, where only one that you name yourself is asked")

// ownNetworks are those not in the internet which netip has no word for: what a
// provider shares among customers, tests, and ways that lead to another address.
var ownNetworks = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2001::/32"),
	netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("fec0::/10"),
}

// wellKnown is the prefix of IPv4 addresses as networks without IPv4 have them.
var wellKnown = netip.MustParsePrefix("64:ff9b::/96")

// Public says whether an address is one of the internet.
func Public(at netip.Addr) bool {
	at = at.Unmap().WithZone("")
	if wellKnown.Contains(at) {
		b := at.As16()
		at = netip.AddrFrom4([4]byte(b[12:]))
	}
	for _, own := range ownNetworks {
		if own.Contains(at) {
			return false
		}
	}
	return at.IsGlobalUnicast() && !at.IsPrivate()
}

// strangers is a way out to where allowed says. It looks at what is dialled, after names
// were looked up and for each redirect. No proxy is asked: that would dial in its place.
func strangers(way *http.Transport, allowed func(netip.Addr) bool) *http.Transport {
	way = way.Clone()
	way.Proxy, way.DialTLSContext = nil, nil
	dialer := net.Dialer{Timeout: within, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		addr, err := netip.ParseAddrPort(address)
		if err != nil || !allowed(addr.Addr()) {
			return errOwnNetwork
		}
		return nil
	}}
	way.DialContext = dialer.DialContext
	return way
}

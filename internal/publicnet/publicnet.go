// Package publicnet is the way out to the internet alone. Whoever asks an address that a
// stranger named goes by it, so that nobody reaches what listens on this computer or in the
// owner's own network. It judges what is dialled, after names were looked up, and so neither
// a redirect nor a name that changes its address meanwhile gets past it.
package publicnet

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// ownNetworks are those not in the internet which netip has no word for: what a
// provider shares among customers, tests, and ways that lead to another address.
var ownNetworks = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
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

// Has says whether an address is one of the internet.
func Has(address netip.Addr) bool {
	address = address.Unmap().WithZone("")
	if wellKnown.Contains(address) {
		b := address.As16()
		address = netip.AddrFrom4([4]byte(b[12:]))
	}
	for _, own := range ownNetworks {
		if own.Contains(address) {
			return false
		}
	}
	return address.IsGlobalUnicast() && !address.IsPrivate()
}

// assigned is what of IPv6 is handed out to anybody: nothing in it stands for an address
// of another kind, but for those in ownNetworks.
var assigned = netip.MustParsePrefix("2000::/3")

// Plain says whether an address is one of the internet, written as itself, and none of
// this computer's own.
func Plain(address netip.Addr) bool {
	if !Has(address) || address.Is6() && !assigned.Contains(address) {
		return false
	}
	own, err := net.InterfaceAddrs()
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr() == address {
			return false
		}
	}
	return err == nil
}

// Way is a way out like the given one, to where allowed says; each connection has to stand
// within that time. What is not allowed fails with refusal. No proxy is asked: that would
// dial in its place.
func Way(like *http.Transport, within time.Duration, allowed func(netip.Addr) bool, refusal error) *http.Transport {
	way := like.Clone()
	way.Proxy, way.DialTLSContext = nil, nil
	dialer := net.Dialer{Timeout: within, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		addr, err := netip.ParseAddrPort(address)
		if err != nil || !allowed(addr.Addr()) {
			return refusal
		}
		return nil
	}}
	way.DialContext = dialer.DialContext
	return way
}

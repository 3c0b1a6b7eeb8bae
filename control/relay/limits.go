package relay

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"porchlight/control/filelimit"
)

// Limits bound what strangers can make the relay hold. Zero fields take the
// defaults of New.
type Limits struct {
	// Visitors served or waiting at a time, of all computers; each takes two
	// file descriptors. Default 16,384, or less where the process may not open
	// that many files.
	Visitors int
	// VisitorsPerComputer of them. Default a quarter of Visitors.
	VisitorsPerComputer int
	// VisitorsPerSource of them, by IPv4 address or IPv6 /64, so that nobody
	// takes a whole computer. Default an eighth of Visitors.
	VisitorsPerSource int
	// VisitorsPassedOn of them, whose tunnel is at another node. Default half of
	// Visitors.
	VisitorsPassedOn int
	// WaitingPerComputer is how many visitors may wait for a data connection at
	// a time. Default 1,024.
	WaitingPerComputer int
	// Handshakes is how many connections may be in their first bytes or their
	// TLS handshake at a time. Default 4,096.
	Handshakes int
	// HandshakesPerSource of them, by IPv4 address or IPv6 /64, and never more
	// than a quarter of what is left, unless it is as many as Handshakes: that is
	// for a relay behind a load balancer. Default 1,024, half of Handshakes at most.
	// The same holds for the other limits by source.
	HandshakesPerSource int
	// Tunnels is how many control connections may be open. Default 16,384.
	Tunnels int
	// AuthConnections is how many HTTP connections to the auth host may be open;
	// each agent holds one for its sync. Default 4,096 more than Tunnels.
	AuthConnections int
	// AuthConnectionsPerSource of them, by IPv4 address or IPv6 /64. Default 1,024.
	AuthConnectionsPerSource int
	// PoolMin and PoolMax bound the idle data connections asked of one agent.
	// Defaults 4 and 256.
	PoolMin, PoolMax int
	// AdmitPerSecond is the rate of control connections once RampUp has passed
	// since the start; it begins at a tenth of it, so that after a restart the
	// agents do not all come at once. Defaults 500 per second and 30 s.
	AdmitPerSecond int
	// AdmitPerSecondPerSource of them, by IPv4 address or IPv6 /64, growing alike.
	// Default a tenth of AdmitPerSecond, and 5 at least. As many as AdmitPerSecond
	// is for a relay behind a load balancer.
	AdmitPerSecondPerSource int
	RampUp                  time.Duration
}

// MostVisitors is how many visitors this process may have open files for.
func MostVisitors() int { return (filelimit.Limit() - 1024) / 2 }

// WithDefaults is l with its zero fields filled in.
func (l Limits) WithDefaults() Limits {
	set := func(field *int, value int) {
		if *field <= 0 {
			*field = value
		}
	}
	// No more than half: the whole would mean that all come from one address.
	setPart := func(field *int, value, whole int) { set(field, max(1, min(value, whole/2))) }
	set(&l.Visitors, max(64, min(16<<10, MostVisitors())))
	set(&l.VisitorsPerComputer, max(64, l.Visitors/4))
	setPart(&l.VisitorsPerSource, max(32, l.Visitors/8), l.Visitors)
	set(&l.VisitorsPassedOn, max(32, l.Visitors/2))
	set(&l.WaitingPerComputer, 1024)
	set(&l.Handshakes, 4096)
	setPart(&l.HandshakesPerSource, 1024, l.Handshakes)
	set(&l.Tunnels, 16<<10)
	set(&l.AuthConnections, l.Tunnels+4096)
	setPart(&l.AuthConnectionsPerSource, 1024, l.AuthConnections)
	set(&l.PoolMin, 4)
	set(&l.PoolMax, 256)
	l.PoolMax = max(l.PoolMax, l.PoolMin)
	set(&l.AdmitPerSecond, 500)
	setPart(&l.AdmitPerSecondPerSource, max(fewestPerSecond, l.AdmitPerSecond/10), l.AdmitPerSecond)
	if l.RampUp <= 0 {
		l.RampUp = 30 * time.Second
	}
	return l
}

// bySource counts connections of one kind, in all and by source. What a source
// may have shrinks with what is left: a quarter of it, so that a few sources
// cannot take everything and those who come last still find room. A few are
// granted in any case.
type bySource struct {
	total, perSource int

	mu      sync.Mutex // protects count and sources
	count   int
	sources map[netip.Prefix]int
}

// fewestPerSource is more than a browser opens at once.
const fewestPerSource = 32

func newBySource(total, perSource int) *bySource {
	return &bySource{total: total, perSource: perSource, sources: make(map[netip.Prefix]int)}
}

// enter reports whether one more connection from source is within bounds; if
// so, leave must be called once.
func (s *bySource) enter(source netip.Prefix) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	left, allowed := s.total-s.count, s.perSource
	if allowed < s.total { // else all come from one address, a load balancer's
		allowed = min(allowed, max(fewestPerSource, left/4))
	}
	if left <= 0 || s.sources[source] >= allowed {
		return false
	}
	s.count++
	s.sources[source]++
	return true
}

// move counts a connection under another source from now on, if that is within
// bounds.
func (s *bySource) move(from, to netip.Prefix) bool {
	if from == to {
		return true
	}
	if !s.enter(to) {
		return false
	}
	s.leave(from)
	return true
}

func (s *bySource) leave(source netip.Prefix) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count--
	if s.sources[source]--; s.sources[source] == 0 {
		delete(s.sources, source)
	}
}

// sourceOf is what a connection is counted under: its IPv4 address, or the /64
// of its IPv6 address, which is what one customer of a network gets.
func sourceOf(addr net.Addr) netip.Prefix {
	ip := addrPort(addr).Addr()
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	prefix, _ := ip.Prefix(bits) // the zero prefix for an address that is none
	return prefix
}

// addrPort is addr with IPv4 in its short form; the zero value if it is no TCP address.
func addrPort(addr net.Addr) netip.AddrPort {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		ap := tcp.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
	}
	return netip.AddrPort{}
}

package relay

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"porchlight/internal/bounds"
	"porchlight/internal/filelimit"
)

// Limits bound what strangers can make the relay hold. Zero fields take the
// defaults of New.
type Limits struct {
	// Visitors served or waiting at a time, of all computers; each takes two
	// file descriptors. Default 16,384, or what half of the files suffice for.
	Visitors int
	// VisitorsPerComputer of them. Default a quarter of Visitors.
	VisitorsPerComputer int
	// VisitorsPerSource of them, by IPv4 address or IPv6 /64, and never more than
	// half of VisitorsPerComputer at one computer, unless it is as many as
	// Visitors. Default an eighth of Visitors.
	VisitorsPerSource int
	// VisitorsPassedOn of them, whose tunnel is at another node. Default half of
	// Visitors.
	VisitorsPassedOn int
	// WaitingPerComputer is how many visitors may wait for a data connection at
	// a time. Default 1,024.
	WaitingPerComputer int
	// Handshakes is how many connections may be in their first bytes or their
	// TLS handshake at a time. Default 4,096, or an eighth of the files.
	Handshakes int
	// HandshakesPerSource of them, by IPv4 address or IPv6 /64, and never more
	// than a quarter of what is left, unless it is as many as Handshakes: that is
	// for a relay behind a load balancer. Default 1,024, half of Handshakes at most.
	// The same holds for the other limits by source.
	HandshakesPerSource int
	// Tunnels is how many control connections may be open. A computer takes one file
	// while nobody visits it, and those of PoolMin then. Default 16,384, or half of the files.
	Tunnels int
	// AuthConnections is how many HTTP connections to the auth host may be open. Default
	// 8,192, or a quarter of the files.
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

// kept is how many of files are not for strangers: health, metrics,
// administration, the store and everything else the process opens live on them.
func kept(files int) int { return max(files/10, min(48, files/4)) }

// WithDefaults is l with its zero fields filled in, and lowered to what this
// process has files for.
func (l Limits) WithDefaults() Limits { return l.For(filelimit.Limit()) }

// For is WithDefaults for a process of so many files. What is not lowered may
// still be more than the files all together: accepting stops before they end.
func (l Limits) For(files int) Limits {
	files -= kept(files)
	// set returns what the field would be with files enough.
	set := func(field *int, value, fits, most int) (wanted int) {
		if wanted = *field; wanted <= 0 {
			wanted, most = value, fits
		}
		*field = max(1, min(wanted, most))
		return wanted
	}
	// A part that is the whole means that all come from one address. That must be
	// asked for: it is not the default, and does not come of a whole that is lowered.
	setPart := func(field *int, value, whole, wanted int) {
		switch {
		case *field >= wanted:
			*field = whole
		case *field <= 0:
			*field = max(1, min(value, whole/2))
		default:
			*field = max(1, min(*field, whole-1))
		}
	}
	const all = 1 << 30
	set(&l.PoolMin, 4, all, 256)
	set(&l.PoolMax, 256, all, all)
	l.PoolMax = max(l.PoolMax, l.PoolMin)
	wanted := set(&l.Visitors, 16<<10, files/2/2, files*3/4/2)
	setPart(&l.VisitorsPerSource, max(32, l.Visitors/8), l.Visitors, wanted)
	set(&l.VisitorsPerComputer, max(64, l.Visitors/4), l.Visitors, l.Visitors)
	set(&l.VisitorsPassedOn, max(32, l.Visitors/2), l.Visitors, l.Visitors)
	set(&l.WaitingPerComputer, 1024, all, all)
	wanted = set(&l.Handshakes, 4096, files/8, files/2)
	setPart(&l.HandshakesPerSource, 1024, l.Handshakes, wanted)
	set(&l.Tunnels, 16<<10, files/2, files*3/4)
	wanted = set(&l.AuthConnections, 8192, files/4, files*3/4)
	setPart(&l.AuthConnectionsPerSource, 1024, l.AuthConnections, wanted)
	wanted = set(&l.AdmitPerSecond, 500, all, all)
	setPart(&l.AdmitPerSecondPerSource, max(fewestPerSecond, l.AdmitPerSecond/10), l.AdmitPerSecond, wanted)
	if l.RampUp <= 0 {
		l.RampUp = 30 * time.Second
	}
	return l
}

// maxTunnels is how many control connections there may be. The last quarter is not for computers
// that have other connections: strangers can have those come, and they leave the other three
// where others need them.
func (l Limits) maxTunnels(extra bool) int {
	if extra {
		return l.Tunnels - l.Tunnels/4
	}
	return l.Tunnels
}

// shared counts visitors within a part of Visitors, of which one source may have
// half at most, unless all of Visitors may come from one address.
func (l Limits) shared(part int) *bySource {
	if l.VisitorsPerSource >= l.Visitors {
		return newBySource(part, part)
	}
	return newBySource(part, min(l.VisitorsPerSource, max(1, part/2)))
}

// bySource counts connections of one kind, in all and by source.
type bySource struct {
	total, perSource int

	mu      sync.Mutex // protects count and sources
	count   int
	sources map[netip.Prefix]int // nil before the first: most computers have no visitor
}

// fewestPerSecond is what a source is given in any case, at full rate: a dozen
// computers behind one address are back within a minute of a restart.
const fewestPerSecond = 5

// fewestPerSource is more than a browser opens at once.
const fewestPerSource = 32

func newBySource(total, perSource int) *bySource {
	return &bySource{total: total, perSource: perSource}
}

// share is how many a source may have of a limit that holds count already. It
// shrinks with what is left: a quarter of it, so that a few sources cannot take
// everything and those who come last still find room. A few are granted in any
// case.
func share(total, perSource, count int) int {
	if perSource >= total {
		return perSource // all come from one address, a load balancer's
	}
	return min(perSource, max(fewestPerSource, (total-count)/4))
}

// enter reports whether one more connection from source is within bounds; if
// so, release must be called once.
func (s *bySource) enter(source netip.Prefix) bool { return s.enterBut(source, 0) }

// enterBut is enter for a source that may not have the last spared places.
func (s *bySource) enterBut(source netip.Prefix, spared int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count+spared >= s.total || s.sources[source] >= share(s.total, s.perSource, s.count+spared) {
		return false
	}
	if s.sources == nil {
		s.sources = make(map[netip.Prefix]int)
	}
	s.count++
	s.sources[source]++
	return true
}

// inside is how many there are.
func (s *bySource) inside() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

func (s *bySource) release(source netip.Prefix) {
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
	return sourceOfIP(addrPort(addr).Addr())
}

func sourceOfIP(ip netip.Addr) netip.Prefix { return bounds.Network(ip, 32, 64) }

// addrPort is addr with IPv4 in its short form; the zero value if it is no TCP address.
func addrPort(addr net.Addr) netip.AddrPort {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		ap := tcp.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
	}
	return netip.AddrPort{}
}

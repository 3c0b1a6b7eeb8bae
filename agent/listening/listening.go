// Package listening tells the owner what listens on this computer now, so that one of
// it can be put at an address: which program of which user, at which port.
//
// The list comes out of the system's tables of sockets, and nobody is sent anything
// for it. Only Look sends something, one GET / and one GET of an icon, and only to a
// listener that the owner's open list names: see there. It decides nothing about apps:
// which there are, and what a new one may be called, it is told.
package listening

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
)

const (
	// lookFor bounds how long programs are looked for: the rest of a list has none.
	lookFor = 3 * time.Second
	// maxListed is far beyond what listens on any real computer.
	maxListed = 2000
)

// Config of New. All of it is required.
type Config struct {
	// App is the app that a port is meant for; false for none.
	App func(port int) (agentapi.AppSummary, bool)
	// Seen is who listens on a port.
	Seen func(ctx context.Context, port int) (agentapi.PortSeen, error)
	// Called is what the owner is told of the program at a place of this computer: a container's
	// name where one is behind it; nil for the program's own.
	Called func(at netip.AddrPort, p procinfo.Process, socket uint64) string
	// Suggest makes a free name and label out of the first text that gives any.
	Suggest func(texts ...string) (name, label string)
	// OwnPorts are Porchlight's own.
	OwnPorts []int
	// Me is the user whose programs are the owner's, by the system's own id.
	Me string
	// Titles says whether Look may ask for titles and icons: the owner's setting.
	Titles func() bool
}

// Listening is made by New. It is safe for concurrent use.
type Listening struct {
	cfg  Config
	slot chan struct{} // one for each Look under way

	askFor time.Duration // the constant outside the tests

	mu   sync.Mutex
	seen map[spot]time.Time // since when; nil before the first look; guarded by mu
}

// spot is what makes two listeners the same one for the owner.
type spot struct {
	port   int
	userID string
	inode  uint64
}

// New starts nothing.
func New(cfg Config) *Listening {
	return &Listening{cfg: cfg, slot: make(chan struct{}, atOnce), askFor: askFor}
}

// listener is who takes connections to a port of this computer.
type listener struct {
	procinfo.Bound
	port    int
	v6      bool // on [::1] and not on 127.0.0.1
	network bool // other machines reach it too
}

// List is what listens now, by port.
func (l *Listening) List() []agentapi.Listening {
	found := reachable(procinfo.AllBound())
	since := l.since(found)
	until := time.Now().Add(lookFor)
	out := make([]agentapi.Listening, 0, len(found))
	for _, one := range found[:min(len(found), maxListed)] {
		who := one.Remembered()
		if who.PID == 0 && time.Now().Before(until) {
			who = one.Find()
		}
		if l.cfg.Called != nil {
			who.Program = l.cfg.Called(one.place(), who, one.Inode)
		}
		out = append(out, l.entry(one, who, since[one.spot()]))
	}
	return out
}

func (one listener) spot() spot { return spot{one.port, one.UserID, one.Inode} }

// place is where a connection of this computer arrives at it.
func (one listener) place() netip.AddrPort {
	if one.v6 {
		return netip.AddrPortFrom(procinfo.IPv6, uint16(one.port))
	}
	return netip.AddrPortFrom(procinfo.IPv4, uint16(one.port))
}

// reachable picks for each port the socket that a connection of this computer arrives
// at: on 127.0.0.1, and where nobody is there, on [::1].
func reachable(all []procinfo.Bound) []listener {
	byPort := map[int]*listener{}
	for _, address := range []netip.Addr{procinfo.IPv4, procinfo.IPv6} {
		v6, best := address.Is6(), map[int]int{}
		for _, b := range all {
			port, rank := int(b.At.Port()), b.Reaches(address)
			if was := byPort[port]; rank == 0 || was != nil && was.v6 != v6 || rank <= best[port] {
				continue
			}
			best[port] = rank
			byPort[port] = &listener{Bound: b, port: port, v6: v6}
		}
	}
	for _, b := range all {
		if one := byPort[int(b.At.Port())]; one != nil && one.UserID == b.UserID && inNetwork(b) {
			one.network = true
		}
	}
	out := make([]listener, 0, len(byPort))
	for _, port := range slices.Sorted(maps.Keys(byPort)) {
		out = append(out, *byPort[port])
	}
	return out
}

// inNetwork says whether a socket takes connections of other computers. What a firewall
// makes of them is not guessed.
func inNetwork(b procinfo.Bound) bool { return !b.At.Addr().IsLoopback() }

// Network are the ports that other computers can open as they are: of programs that
// visitors would reach here, and of those that listen for the network alone.
func Network() map[int]bool {
	open, all := map[int]bool{}, procinfo.AllBound()
	for _, b := range all {
		if inNetwork(b) {
			open[int(b.At.Port())] = true
		}
	}
	for _, one := range reachable(all) {
		open[one.port] = one.network
	}
	return open
}

// since notes what listens now, forgets what does no longer, and says when each was
// first seen.
func (l *Listening) since(found []listener) map[spot]time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, next := time.Now().UTC(), make(map[spot]time.Time, len(found))
	fresh := now
	if l.seen == nil {
		fresh = now.Add(-steadyAfter)
	}
	for _, one := range found {
		at, ok := l.seen[one.spot()]
		if !ok {
			at = fresh
		}
		next[one.spot()] = at
	}
	l.seen = next
	return maps.Clone(next)
}

// entry is what the owner is told of one listener.
func (l *Listening) entry(one listener, who procinfo.Process, since time.Time) agentapi.Listening {
	out := agentapi.Listening{
		Port: one.port, Program: who.Program, User: cmp.Or(who.User, one.User), Since: since,
		Own: one.UserID != "" && one.UserID == l.cfg.Me, Network: one.network,
	}
	young := time.Since(since) < steadyAfter
	out.Steady, out.Passing = !young && !handedOut(one.port), young && handedOut(one.port)
	out.NotOffered = l.notOffered(one.port, who.Program)
	out.MeantFor = l.meantFor(one.port, named(who.Program), portLabel(one.port))
	out.Looks = l.cfg.Titles() && out.Own && !out.Published && out.NotOffered == ""
	return out
}

// Port is who listens on one port, and what it is meant for. A new app is named after
// the folder its owner is in, where that gives a name.
func (l *Listening) Port(ctx context.Context, port int, folder string) (agentapi.PortSeen, error) {
	seen, err := l.cfg.Seen(ctx, port)
	if err == nil {
		seen.MeantFor = l.meantFor(port, folder, named(seen.Listener.Program), portLabel(port))
	}
	return seen, err
}

// meantFor suggests what a new app is called by the first text that gives a name.
func (l *Listening) meantFor(port int, texts ...string) agentapi.MeantFor {
	if app, ok := l.cfg.App(port); ok {
		return agentapi.MeantFor{Published: app.Status == agentapi.StatusLive, App: app.Name, Status: app.Status, Name: app.Name, Label: app.Label}
	}
	name, label := l.cfg.Suggest(texts...)
	return agentapi.MeantFor{Name: name, Label: label}
}

// ours are programs of Porchlight, which may run more than once.
var ours = []string{"porchlight", "porchlight-desktop", "porchlight-control"}

// notOffered says why a port is not offered; empty where it is.
func (l *Listening) notOffered(port int, program string) string {
	if slices.Contains(l.cfg.OwnPorts, port) || slices.Contains(ours, program) {
		return agentapi.NotOfferedOwn
	}
	return other(port, program)
}

func portLabel(port int) string { return "Port " + strconv.Itoa(port) }

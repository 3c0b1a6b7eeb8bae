package proxy

import (
	"container/list"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"porchlight/internal/bounds"
)

// Who connects costs this computer a file and, over HTTP/2, 38 KiB, before
// anything is known of them. So there are so many connections and no more, a
// source gets a share of them that shrinks with what is left, and a connection
// has ten seconds to send a request of somebody who is let in. A visitor who is
// away signing in for longer comes back on a new one.

const (
	// mostVisitors is the most connections in any case; by the process's files it
	// may be fewer. Half of the files are for requests (see rooms), an eighth for
	// everything else.
	mostVisitors = 16 << 10
	// fewestPerSource is more than a browser opens at once.
	fewestPerSource = 32
	decideWithin    = 10 * time.Second
	// partingTime is how long a visitor has to notice that the connection ends.
	partingTime = time.Second
	// mostOver bounds how long requests under way put that end off.
	mostOver = 30 * time.Second
)

// door counts the connections of visitors.
type door struct {
	most   int
	within time.Duration // for a first request that is let through
	log    *slog.Logger

	mu        sync.Mutex
	open      int                  // guarded by mu
	sources   map[netip.Prefix]int // none is zero; guarded by mu
	undecided list.List            // of *caller, the oldest first; guarded by mu
	told      tellings             // guarded by mu
}

// caller is one connection at the door.
type caller struct {
	door   *door
	source netip.Prefix
	raw    net.Conn // below TLS

	decided atomic.Bool  // a request was let through
	over    atomic.Bool  // none was in time
	active  atomic.Bool  // a request is being answered; not kept once decided
	ended   atomic.Int64 // when the last was; Unix nanoseconds

	// Guarded by door.mu:
	at     *list.Element // nil once decided or gone
	gone   bool
	secure *tls.Conn // after its handshake
	timer  *time.Timer
	due    time.Time
	parted bool // goodbye was said
}

func newDoor(files int, within time.Duration, log *slog.Logger) *door {
	return &door{
		most: max(2*fewestPerSource, min(mostVisitors, files*3/8)), within: within, log: log,
		sources: map[netip.Prefix]int{}, told: tellings{},
	}
}

// enter counts a connection in, or returns nil when its source has its share.
// Where there is no place left the oldest undecided one goes.
func (d *door) enter(raw net.Conn) *caller {
	c := &caller{door: d, source: sourceOf(raw.RemoteAddr()), raw: raw}
	d.mu.Lock()
	out, ok := d.place(c)
	d.mu.Unlock()
	if out != nil {
		abort(out.raw)
	}
	if !ok {
		return nil
	}
	return c
}

// place finds a place for c. out has lost its own. mu is held.
func (d *door) place(c *caller) (out *caller, ok bool) {
	left := d.most - d.open
	if d.sources[c.source] >= max(fewestPerSource, left/2) {
		d.tell("one source", c.source)
		return nil, false
	}
	if left <= 0 {
		d.tell("all", c.source)
		oldest := d.undecided.Front()
		if oldest == nil {
			return nil, false
		}
		out = oldest.Value.(*caller)
		d.remove(out)
	}
	d.open++
	d.sources[c.source]++
	c.at = d.undecided.PushBack(c)
	return out, true
}

// tell has the log say what is full. mu is held.
func (d *door) tell(what string, source netip.Prefix) {
	if refused, tell := d.told.count(what, time.Now()); tell {
		d.log.Warn("too many connections of visitors: new ones are refused or take the place of those nobody has signed in on",
			"limit", what, "source", source, "open", d.open, "refused", refused)
	}
}

// remove takes a connection out of all counts. mu is held.
func (d *door) remove(c *caller) {
	if c.gone {
		return
	}
	c.gone = true
	d.open--
	if d.sources[c.source]--; d.sources[c.source] <= 0 {
		delete(d.sources, c.source)
	}
	d.settle(c)
}

// settle ends the wait for c's first request that is let through. mu is held.
func (d *door) settle(c *caller) {
	if c.at != nil {
		d.undecided.Remove(c.at)
		c.at = nil
	}
	if c.timer != nil {
		c.timer.Stop()
	}
}

// leave is called when the connection is closed, any number of times.
func (c *caller) leave() {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	c.door.remove(c)
}

// await begins the wait for a request, after the TLS handshake.
func (c *caller) await(secure *tls.Conn) {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	if c.at == nil {
		return
	}
	c.secure, c.due = secure, time.Now().Add(c.door.within)
	c.timer = time.AfterFunc(c.door.within, c.tooLate)
}

// letIn keeps the connection for as long as any: a request on it was let through.
// h is the header of its answer.
func (c *caller) letIn(h http.Header) {
	if c == nil || c.decided.Swap(true) {
		return
	}
	c.door.mu.Lock()
	c.door.settle(c)
	c.door.mu.Unlock()
	if visitor, ok := c.raw.(interface{ LetIn() }); ok { // it came through a tunnel
		visitor.LetIn()
	}
	if c.over.Load() {
		h.Del("Connection") // see hurry
	}
}

// hurry makes a request that came too late the last one on its connection.
func (c *caller) hurry(w http.ResponseWriter) {
	if c != nil && c.over.Load() && !c.decided.Load() {
		w.Header().Set("Connection", "close")
	}
}

// follow is a server's ConnState: it knows whether anything is being answered,
// to the last byte.
func follow(conn net.Conn, state http.ConnState) {
	c := callerBelow(conn)
	if c == nil || c.decided.Load() {
		return
	}
	if state == http.StateIdle {
		c.ended.Store(time.Now().UnixNano())
	}
	c.active.Store(state == http.StateActive)
}

// tooLate ends a connection on which nobody was let in: it waits for what is
// being answered, says goodbye, and closes a moment later.
func (c *caller) tooLate() {
	now := time.Now()
	c.door.mu.Lock()
	if c.at == nil {
		c.door.mu.Unlock()
		return
	}
	c.over.Store(true)
	long := now.Sub(c.due) > mostOver
	busy := c.active.Load() || now.Sub(time.Unix(0, c.ended.Load())) < partingTime
	goodbye := !busy && !c.parted && !long
	if busy && !long || goodbye {
		c.parted = c.parted || goodbye
		c.timer.Reset(partingTime)
	} else {
		c.door.remove(c)
	}
	gone := c.gone
	c.door.mu.Unlock()
	switch {
	case gone:
		abort(c.raw)
	case goodbye:
		c.goodbye()
	}
}

// goAway is HTTP/2's graceful end (RFC 9113, section 6.8): what is under way is
// answered, what follows belongs on another connection.
const goAway = "\x00\x00\x08\x07\x00\x00\x00\x00\x00" + "\x7f\xff\xff\xff" + "\x00\x00\x00\x00"

// goodbye tells the visitor's side that this connection ends, while the server
// has nothing to say on it. It fails on one that ends anyway.
func (c *caller) goodbye() {
	if c.secure.ConnectionState().NegotiatedProtocol != "h2" {
		_ = c.secure.CloseWrite()
		return
	}
	_ = c.secure.SetWriteDeadline(time.Now().Add(partingTime))
	_, _ = c.secure.Write([]byte(goAway))
	_ = c.secure.SetWriteDeadline(time.Time{})
}

// abort ends a connection at once.
func abort(raw net.Conn) {
	if conn, ok := raw.(interface{ Abort() error }); ok {
		_ = conn.Abort() // closed is closed
		return
	}
	_ = raw.Close()
}

// callerOf is the connection a request came on; nil in tests without one.
func callerOf(r *http.Request) *caller {
	c, _ := r.Context().Value(callerKey{}).(*caller)
	return c
}

// callerBelow is the caller of a connection that front has accepted, or nil.
func callerBelow(conn net.Conn) *caller {
	if over, ok := conn.(interface{ NetConn() net.Conn }); ok {
		if gather, ok := over.NetConn().(*gatherConn); ok {
			return gather.caller
		}
	}
	return nil
}

// sourceOf is what one visitor easily has: an IPv4 address, or an IPv6 /64. It is
// the zero prefix for what is no address.
func sourceOf(addr net.Addr) netip.Prefix {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	return bounds.Network(tcp.AddrPort().Addr(), 32, 64)
}

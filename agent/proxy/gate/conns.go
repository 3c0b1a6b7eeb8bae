package gate

import (
	"container/list"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"porchlight/agent/proxy/http2"
	"porchlight/agent/proxy/limits"
	"porchlight/internal/bounds"
)

// A connection costs this computer a file and, over HTTP/2, 38 KiB, before anything
// is known of who made it. So only so many are open at a time, one source gets a
// share of them that shrinks with what is left, and a connection has ten seconds to
// send a request of somebody who is let in. A visitor who takes longer to sign in
// comes back on a new one.

// conns counts the connections of visitors.
type conns struct {
	most   int
	within time.Duration // for a first request that is let through
	full   func()        // nil for nobody to be told
	log    *slog.Logger

	mu      sync.Mutex
	open    int                      // guarded by mu
	sources map[netip.Prefix]*source // those that have something open or held; guarded by mu
	waiting list.List                // of *Conn on which nobody was let in, the oldest first; guarded by mu
	held    int                      // bytes, see Conn.Take; guarded by mu
	holders list.List                // of *Conn that hold some and on which nobody was let in, the oldest first; guarded by mu
	refused Refusals                 // guarded by mu
}

// source is what one visitor easily has: see sourceOf.
type source struct {
	prefix netip.Prefix
	open   int // connections; guarded by conns.mu
	held   int // bytes; guarded by conns.mu
}

// Conn is one connection of a visitor. A request of a test that came on none has nil, on
// which what is called for a request does nothing; Hold is not called where Holds is true.
type Conn struct {
	conns  *conns
	source *source
	raw    net.Conn    // below TLS
	strict *strictConn // nil over HTTP/2; set before a request is read
	http2  *http2.Conn // nil unless our own server has it; set before a request is read

	letIn  atomic.Bool  // a request was let through
	late   atomic.Bool  // none was in time
	active atomic.Bool  // a request is being answered; not kept once one was let through
	ended  atomic.Int64 // when the last answer was; Unix nanoseconds

	certificate *[sha256.Size]byte // see Certificate; set before a request is read

	cut atomic.Pointer[<-chan struct{}] // see Cut; nil while it was not

	// Guarded by conns.mu:
	waits   *list.Element // in conns.waiting; nil once let in or closed
	holds   int           // bytes, see Take
	holding *list.Element // in conns.holders; nil while it holds nothing, once let in or closed
	empty   chan struct{} // closed when it holds nothing any more; nil unless it gave way
	closed  bool
	secure  *tls.Conn // after its handshake
	timer   *time.Timer
	due     time.Time
	parted  bool // the visitor's side was told that the connection ends

	held    string // see Hold
	release func() // nil while nothing is held
}

func newConns(files int, within time.Duration, full func(), log *slog.Logger) *conns {
	return &conns{
		most: max(2*limits.LeastPerSource, min(limits.Conns, limits.Share(files, limits.ConnsShare))), within: within, full: full, log: log,
		sources: map[netip.Prefix]*source{}, refused: Refusals{},
	}
}

// add counts a connection, or returns nil when its source has its share. Where no
// place is left, the connection goes that has waited longest for somebody to be
// let in.
func (s *conns) add(raw net.Conn) *Conn {
	c := &Conn{conns: s, source: &source{prefix: sourceOf(raw.RemoteAddr())}, raw: raw}
	s.mu.Lock()
	if known := s.sources[c.source.prefix]; known != nil {
		c.source = known
	}
	out, ok := s.admit(c)
	s.mu.Unlock()
	if out != nil {
		abort(out.raw)
	}
	if !ok {
		return nil
	}
	return c
}

// admit finds a place for c; out has lost its own. mu is held.
func (s *conns) admit(c *Conn) (out *Conn, ok bool) {
	left := s.most - s.open
	if c.source.open >= max(limits.LeastPerSource, left/2) {
		s.logRefusal("one source", c.source)
		return nil, false
	}
	if left <= 0 {
		s.logRefusal("all", c.source)
		oldest := s.waiting.Front()
		if oldest == nil {
			return nil, false
		}
		out = oldest.Value.(*Conn)
		s.remove(out)
	}
	s.open++
	c.source.open++
	s.sources[c.source.prefix] = c.source
	c.waits = s.waiting.PushBack(c)
	return out, true
}

// logRefusal says in the log which limit was reached. mu is held.
func (s *conns) logRefusal(limit string, source *source) {
	if s.full != nil {
		s.full()
	}
	if refused, log := s.refused.Count(limit, time.Now()); log {
		s.log.Warn("visitors have all the connections or the memory they may have: new ones are refused or take the place of those nobody has signed in on",
			"limit", limit, "source", source.prefix, "open", s.open, "refused", refused)
	}
}

// remove takes a connection out of all counts. mu is held.
func (s *conns) remove(c *Conn) {
	if c.closed {
		return
	}
	c.closed = true
	if c.release != nil {
		c.release()
	}
	s.open--
	c.source.open--
	s.forget(c.source)
	s.stopWaiting(c)
}

// forget lets go of a source that has nothing any more. mu is held.
func (s *conns) forget(x *source) {
	if x.open <= 0 && x.held <= 0 && s.sources[x.prefix] == x {
		delete(s.sources, x.prefix)
	}
}

// stopWaiting ends the wait for c's first request that is let through. mu is held.
func (s *conns) stopWaiting(c *Conn) {
	s.stopHolding(c)
	if c.waits != nil {
		s.waiting.Remove(c.waits)
		c.waits = nil
	}
	if c.timer != nil {
		c.timer.Stop()
	}
}

// close is called when the connection is closed, any number of times.
func (c *Conn) close() {
	c.conns.mu.Lock()
	defer c.conns.mu.Unlock()
	c.conns.remove(c)
}

// await begins the wait for a request, after the TLS handshake.
func (c *Conn) await(secure *tls.Conn) {
	c.conns.mu.Lock()
	defer c.conns.mu.Unlock()
	if c.waits == nil {
		return
	}
	c.secure, c.due = secure, time.Now().Add(c.conns.within)
	c.timer = time.AfterFunc(c.conns.within, c.tooLate)
}

// LetIn says that a request on the connection was let through, so that it may stay
// open. h is the header of that request's answer.
func (c *Conn) LetIn(h http.Header) {
	if c == nil || c.letIn.Swap(true) {
		return
	}
	c.conns.mu.Lock()
	c.conns.stopWaiting(c)
	c.conns.mu.Unlock()
	if visitor, ok := c.raw.(interface{ LetIn() }); ok { // it came through a tunnel
		visitor.LetIn()
	}
	if c.late.Load() {
		h.Del("Connection") // see hurry
	}
}

// Hold has release called when the connection is closed, or when it holds something
// else. what names it for Holds; release must not wait.
func (c *Conn) Hold(what string, release func()) {
	c.conns.mu.Lock()
	before := release
	if !c.closed {
		before, c.held, c.release = c.release, what, release
	}
	c.conns.mu.Unlock()
	if before != nil {
		before()
	}
}

// Holds says whether the connection holds what is named. On nil it is true: there is
// nothing to be held.
func (c *Conn) Holds(what string) bool {
	if c == nil {
		return true
	}
	c.conns.mu.Lock()
	defer c.conns.mu.Unlock()
	return c.held == what
}

// Cut ends the connection at once, without the goodbye of TLS, and nothing that came on it
// before is read any more. Whoever serves it is told once together is closed (nil: at once),
// and closes it.
func (c *Conn) Cut(together <-chan struct{}) {
	if c == nil || !c.cut.CompareAndSwap(nil, &together) {
		return
	}
	if conn, ok := c.raw.(interface{ Cut() bool }); !ok || !conn.Cut() {
		abort(c.raw)
	}
}

// Abort is Cut of one connection alone.
func (c *Conn) Abort() { c.Cut(nil) }

// wasCut says whether the connection was cut, once whoever serves it may be told.
func (c *Conn) wasCut() bool {
	if c == nil {
		return false
	}
	together := c.cut.Load()
	if together == nil {
		return false
	}
	if *together != nil {
		<-*together
	}
	return true
}

// Stranded says that the network may have gone under the connection: it came through a
// tunnel that has ended since.
func (c *Conn) Stranded() bool {
	if c == nil {
		return false
	}
	conn, ok := c.raw.(interface{ Stranded() bool })
	return ok && conn.Stranded()
}

// Upgraded says that a WebSocket has taken the connection over: what the visitor
// sends from now on are no requests.
func (c *Conn) Upgraded() {
	if c != nil && c.strict != nil {
		c.strict.upgraded.Store(true)
	}
}

// hurry makes a request that came too late the last one on its connection.
func (c *Conn) hurry(w http.ResponseWriter) {
	if c != nil && c.late.Load() && !c.letIn.Load() {
		w.Header().Set("Connection", "close")
	}
}

// follow is a server's ConnState: it knows whether anything is being answered,
// to the last byte.
func follow(conn net.Conn, state http.ConnState) {
	c := connBelow(conn)
	if c == nil || c.letIn.Load() {
		return
	}
	if state == http.StateIdle {
		c.ended.Store(time.Now().UnixNano())
	}
	c.active.Store(state == http.StateActive)
}

// tooLate ends a connection on which nobody was let in: it waits for what is
// being answered, says goodbye, and closes a moment later.
func (c *Conn) tooLate() {
	now := time.Now()
	c.conns.mu.Lock()
	if c.waits == nil {
		c.conns.mu.Unlock()
		return
	}
	c.late.Store(true)
	long := now.Sub(c.due) > limits.MaxParting
	busy := c.active.Load() || now.Sub(time.Unix(0, c.ended.Load())) < limits.Parting
	goodbye := !busy && !c.parted && !long
	if busy && !long || goodbye {
		c.parted = c.parted || goodbye
		c.timer.Reset(limits.Parting)
	} else {
		c.conns.remove(c)
	}
	closed := c.closed
	c.conns.mu.Unlock()
	switch {
	case closed:
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
func (c *Conn) goodbye() {
	if c.http2 != nil {
		c.http2.Goodbye()
		return
	}
	if c.secure.ConnectionState().NegotiatedProtocol != "h2" {
		_ = c.secure.CloseWrite()
		return
	}
	_ = c.secure.SetWriteDeadline(time.Now().Add(limits.Parting))
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

type connKey struct{} // *Conn, in a request's context

func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, connBelow(conn))
}

// ConnOf is the connection a request came on; nil in tests without one.
func ConnOf(r *http.Request) *Conn {
	c, _ := r.Context().Value(connKey{}).(*Conn)
	return c
}

// connBelow is the Conn of a connection that front has accepted, or nil.
func connBelow(conn net.Conn) *Conn {
	if own, ok := conn.(*wideConn); ok {
		return own.gather.conn
	}
	if wrapper, ok := conn.(interface{ NetConn() net.Conn }); ok {
		if gather, ok := wrapper.NetConn().(*gatherConn); ok {
			return gather.conn
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

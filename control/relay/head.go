package relay

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"porchlight/agent/proxy/http2"
)

// The head of a request is kept in memory until it is answered, and an answer waits for whoever
// does not take it. So what connections to the auth host hold of these has a door of its own: for
// each heldPart of it a connection takes a place there, and the one of a stranger goes that has
// held some for the longest time where there is none. Those of somebody known have room
// of their own.
const (
	smallHead  = 4 << 10  // bytes for which nobody needs a place
	smallKnown = 64 << 10 // and nobody who is known: each waiting sync is a request
	heldPart   = 20 << 10
	// heldByStrangers and heldByKnown are 63 MiB together.
	heldByStrangers = 480 * heldPart
	heldByKnown     = 2720 * heldPart
	heldPerSource   = heldByStrangers // all the cookies of a browser take a third of it
	// partingHead is how long one that goes has to let go of what it held.
	partingHead = time.Second
	// collectEvery is how long, at least, there is between two looks for the memory of those
	// that went, and collectShare how many times longer than the look before it took: strangers
	// have others go as often as they like.
	collectEvery = 10 * time.Millisecond
	collectShare = 10
)

func newHeadDoor(l Limits) *door {
	if l.AuthConnectionsPerSource >= l.AuthConnections {
		return newDoor(heldByStrangers/heldPart, heldByStrangers/heldPart) // all come from one address, a load balancer's
	}
	return newDoor(heldByStrangers/heldPart, heldPerSource/heldPart)
}

// head counts what an HTTP connection holds of requests that are not answered: over HTTP/1.1
// what came of their heads, over HTTP/2 what its server says.
type head struct {
	relay  *Relay
	conn   net.Conn
	source netip.Prefix
	place  *newcomer   // among the connections to the auth host
	h2     *http2.Conn // nil over HTTP/1.1; set before anything is held

	mu      sync.Mutex  // protects what follows
	first   *time.Timer // closes one that asks for nothing
	parting *time.Timer // closes one that said goodbye; nil before
	bytes   int
	running int  // requests
	serving bool // what comes now is a request's body
	known   bool
	closed  bool
	gone    chan struct{} // closed when the connection is
	parts   []*newcomer   // at the door for what is held
	empty   chan struct{} // closed when nothing is held any more; nil while nobody waits for that
}

func newHead(r *Relay, conn net.Conn, source netip.Prefix, place *newcomer) *head {
	return &head{relay: r, conn: conn, source: source, place: place, gone: make(chan struct{})}
}

// await begins the wait for a first request.
func (h *head) await() {
	h.relay.auth.becomes(h.place, h)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.first = time.AfterFunc(h.relay.cfg.FirstRequest, func() { _ = h.Close() })
	if h.closed { // it had to go just now
		h.first.Stop()
	}
}

// LetIn says of a request to the auth host that whoever sent it is known: by a device
// credential, a session, or as a browser that signed in before. Its connection keeps its
// places while those of strangers give way to newcomers.
func LetIn(r *http.Request) {
	h, _ := r.Context().Value(headKey{}).(*head)
	if h == nil {
		return
	}
	h.relay.auth.keep(h.place)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known {
		return
	}
	for _, part := range h.parts {
		h.relay.heads.release(part)
	}
	h.known, h.parts = true, nil
	h.fill()
}

// Take has the connection hold n bytes more, for which others may have to go. It is false
// where there is no room for it, or where it had to go itself.
func (h *head) Take(n int) bool {
	sent, ok := h.hold(n)
	for _, other := range sent {
		h.relay.dismiss(other, limitHeads)
		if ok = ok && other.conn != h; !ok {
			continue // with nothing to wait for
		}
		select {
		case <-other.conn.(*head).emptied():
		case <-h.gone: // it has to let go itself, for which others wait
			ok = false
		case <-time.After(partingHead):
			ok = false
		}
	}
	if !ok {
		h.Give(n)
	}
	if len(sent) > 0 {
		h.relay.collect()
	}
	return ok
}

// collect has the memory of those that went be found, before as much is taken again: the
// garbage collector lets it grow with how fast it comes.
func (r *Relay) collect() {
	r.collecting.Lock()
	defer r.collecting.Unlock()
	if began := time.Now(); began.After(r.collectNext) {
		runtime.GC()
		r.collectNext = time.Now().Add(max(collectEvery, collectShare*time.Since(began)))
	}
}

// hold is Take; sent have to go, and where it is false n has to be given back.
func (h *head) hold(n int) (sent []*newcomer, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bytes += n; h.closed {
		return nil, false
	}
	return h.fill()
}

func (h *head) door() *door {
	if h.known {
		return h.relay.knownHeads
	}
	return h.relay.heads
}

// fill takes the places it needs. mu is held.
func (h *head) fill() (sent []*newcomer, ok bool) {
	for len(h.parts) < h.places() {
		part, other, ok := h.door().enter(h, h.source)
		if !ok {
			h.relay.reached(limitHeads)
			return sent, false
		}
		if h.known {
			h.door().keep(part)
		}
		h.parts = append(h.parts, part)
		if other != nil {
			sent = append(sent, other)
		}
	}
	return sent, true
}

// places is how many it needs. mu is held.
func (h *head) places() int {
	if h.bytes <= smallHead || h.known && h.bytes <= smallKnown {
		return 0
	}
	return (h.bytes + heldPart - 1) / heldPart
}

// Give has it hold n bytes less.
func (h *head) Give(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes = max(0, h.bytes-n) // of a connection that is closed all may have gone
	h.shrink()
}

// came is Take for what was read over HTTP/1.1. A connection for which there is no room is
// closed.
func (h *head) came(n int) {
	h.mu.Lock()
	body := h.serving || h.h2 != nil
	h.mu.Unlock()
	if !body && n > 0 && !h.Take(n) {
		_ = h.Close()
	}
}

// begin says that a head is a request now. Over HTTP/1.1 its body comes next.
func (h *head) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.first.Stop()
	h.serving = h.h2 == nil
	if h.running++; h.running == 1 {
		h.relay.auth.busy(h.place, true)
	}
}

// end says that one is answered.
func (h *head) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running--; h.running == 0 {
		h.relay.auth.busy(h.place, false)
	}
	if h.serving {
		h.serving, h.bytes = false, 0
		h.shrink()
	}
}

// Close ends the connection. One over HTTP/2 on which nothing is under way says goodbye, so
// that a request that comes just now is sent again on another.
func (h *head) Close() error {
	h.mu.Lock()
	closed, idle := h.closed, h.h2 != nil && h.running == 0 && h.bytes == 0
	if idle && !closed && h.parting == nil {
		h.parting = time.AfterFunc(partingHead, func() { _ = h.conn.Close() })
	}
	h.mu.Unlock()
	if closed {
		return nil // it may have given way already, once for each of its places
	}
	if idle {
		h.h2.Shutdown()
		return nil
	}
	if h.h2 != nil {
		h.h2.Abort() // who reads it may wait, and not see the end
	}
	return h.conn.Close()
}

// closedNow is called when the connection was closed.
func (h *head) closedNow() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, timer := range []*time.Timer{h.first, h.parting} { // each holds all that is left of it
		if timer != nil {
			timer.Stop()
		}
	}
	if !h.closed {
		close(h.gone)
	}
	h.closed = true
	if !h.serving && h.h2 == nil {
		h.bytes = 0
	}
	h.shrink()
}

// shrink takes what it does not need off the door. mu is held.
func (h *head) shrink() {
	for len(h.parts) > h.places() {
		last := len(h.parts) - 1
		h.door().release(h.parts[last])
		h.parts = h.parts[:last]
	}
	if h.bytes == 0 && h.empty != nil {
		close(h.empty)
		h.empty = nil
	}
}

// emptied is closed once nothing is held.
func (h *head) emptied() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.empty == nil {
		h.empty = make(chan struct{})
		if h.bytes == 0 {
			defer h.shrink()
		}
	}
	return h.empty
}

// holder is a connection of which HTTP/2 asks what it may hold.
type holder struct {
	*tls.Conn
	*head
}

func (c holder) Close() error { return c.Conn.Close() }

type headKey struct{}

// withHead lets a connection's requests find its head.
func withHead(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(*tls.Conn); ok {
		if prefixed, ok := secure.NetConn().(*prefixedConn); ok {
			return context.WithValue(ctx, headKey{}, prefixed.head)
		}
	}
	return ctx
}

// countHeads is next for requests whose heads are counted.
func countHeads(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if h, _ := req.Context().Value(headKey{}).(*head); h != nil {
			h.begin()
			defer h.end()
		}
		next.ServeHTTP(w, req)
	})
}

package relay

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// The head of a request is kept in memory until all of it is here, and it may be as
// long as maxHead: a thousand times what a connection takes otherwise. So connections
// with an unusually long head have a door of their own, with few places.
const (
	// smallHead is how many bytes may come without a place there. Over HTTP/2 one
	// byte can stand for a field, which takes forty in memory.
	smallHead           = 4 << 10
	largeHeads          = 128
	largeHeadsPerSource = 32
)

func newHeadDoor(l Limits) *door {
	if l.AuthConnectionsPerSource >= l.AuthConnections {
		return newDoor(largeHeads, largeHeads) // all come from one address, a load balancer's
	}
	return newDoor(largeHeads, largeHeadsPerSource)
}

// head counts what has come on an HTTP connection and belongs to no request yet.
type head struct {
	relay  *Relay
	conn   net.Conn
	source netip.Prefix
	place  *newcomer   // among the connections to the auth host
	first  *time.Timer // closes one that asks for nothing

	mu      sync.Mutex // protects what follows
	bytes   int
	serving bool // what comes now is an HTTP/1 request's body
	closed  bool
	waiting *newcomer // at the door for large heads; nil for none
}

func newHead(r *Relay, conn net.Conn, source netip.Prefix, place *newcomer) *head {
	return &head{relay: r, conn: conn, source: source, place: place, first: time.AfterFunc(r.cfg.FirstRequest, func() { _ = conn.Close() })}
}

// LetIn says of a request to the auth host that whoever sent it is known: by a device
// credential, a session, or as a browser that signed in before. Its connection keeps its
// place while those of strangers give way to newcomers.
func LetIn(r *http.Request) {
	if h, _ := r.Context().Value(headKey{}).(*head); h != nil {
		h.relay.auth.keep(h.place)
	}
}

// came counts n bytes more. A connection that has to go for them is closed.
func (h *head) came(n int) {
	h.mu.Lock()
	if h.serving || h.closed {
		h.mu.Unlock()
		return
	}
	var sent *newcomer
	if h.bytes += n; h.bytes > smallHead && h.waiting == nil {
		h.waiting, sent, _ = h.relay.heads.enter(h.conn, h.source)
	}
	h.mu.Unlock()
	h.relay.dismiss(sent, limitHeads)
}

// went takes n bytes off the account: they have become part of a request.
func (h *head) went(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes = max(0, h.bytes-n)
	if h.bytes <= smallHead {
		h.leave()
	}
}

// whole says that a head is a request now, whose body comes next where that is
// all that can come: HTTP/2 mixes it with others' heads.
func (h *head) whole(body bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes, h.serving = 0, body
	h.leave()
}

func (h *head) close() {
	h.first.Stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.leave()
}

// leave takes it off the door. mu is held.
func (h *head) leave() {
	if h.waiting != nil {
		h.relay.heads.leave(h.waiting)
		h.waiting = nil
	}
}

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
			h.first.Stop()
			h.relay.auth.heard(h.place)
			if req.ProtoMajor == 1 {
				h.whole(true)
				defer h.whole(false)
			} else {
				h.whole(false)
				req.Body = countedBody{req.Body, h}
			}
		}
		next.ServeHTTP(w, req)
	})
}

// countedBody is a body whose bytes are no head's.
type countedBody struct {
	io.ReadCloser
	head *head
}

func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.head.went(n)
	return n, err
}

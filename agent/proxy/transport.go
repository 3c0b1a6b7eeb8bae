package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/upstream"
)

// newTransport makes the connections to apps: loopback only, no proxy of the
// environment, nothing decoded on the way. A visit's connection is seen through wrap.
func newTransport(dial dialFunc, idle, idlePerApp int, wrap func(net.Conn, *visit) net.Conn, protocols ...string) *http.Transport {
	return &http.Transport{
		Proxy: nil,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := dial(ctx, protocols...)
			if err != nil {
				return nil, err
			}
			return wrap(conn, ctx.Value(visitKey{}).(*visit)), nil
		},
		DisableCompression:     true,
		MaxIdleConns:           idle,
		MaxIdleConnsPerHost:    idlePerApp,
		IdleConnTimeout:        maxIdleTime,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxResponseHeader,
		ReadBufferSize:         readBuffer,
		WriteBufferSize:        16 << 10,
	}
}

// transports take requests to apps: HTTP/1.1, or HTTP/2 without TLS to those the
// owner says speak it, and gRPC over TLS. A WebSocket goes over HTTP/1.1 to them as
// well, which is how servers take one. Whether TLS is below is the connection's own
// affair: net/http is told of none.
//
// An app may close a kept connection at the moment a request goes out on it. Whether it
// has read the request then cannot be known, so what may not be repeated goes out on
// connections of which each carries one request: once.
type transports struct{ http1, once, http2 *http.Transport }

// onceBuffer is made for every request that may not be repeated, each way.
const onceBuffer = 4 << 10

func newTransports(dial dialFunc, idle int) transports {
	http1 := newTransport(dial, idle, maxIdlePerApp, func(conn net.Conn, _ *visit) net.Conn { return &identifiedConn{Conn: conn} })
	once := newTransport(dial, idle, -1, func(conn net.Conn, _ *visit) net.Conn {
		return &identifiedConn{Conn: &outspokenConn{Conn: conn}}
	})
	once.ReadBufferSize, once.WriteBufferSize = onceBuffer, onceBuffer
	http2 := newTransport(dial, idle, maxIdlePerApp, func(conn net.Conn, v *visit) net.Conn { return &http2Conn{Conn: conn, visit: v} }, "h2")
	http2.Protocols = new(http.Protocols)
	http2.Protocols.SetUnencryptedHTTP2(true)
	return transports{http1: http1, once: once, http2: http2}
}

func (t transports) RoundTrip(r *http.Request) (*http.Response, error) {
	v := r.Context().Value(visitKey{}).(*visit)
	if overHTTP2(r, v.vhost.app.Options.Scheme()) {
		// In no order, and none is needed: an HTTP/2 server that finds too many
		// fields refuses the request and reads none of it.
		v.five.setIn(r.Header)
		if !mayRepeat(r) && (r.Body == nil || r.Body == http.NoBody) {
			// net/http sends what has no body again when it is reset with
			// PROTOCOL_ERROR. One that is empty and cannot be read again, never.
			r.Body = io.NopCloser(strings.NewReader(""))
		}
		return t.http2.RoundTrip(r)
	}
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), v.five.trace()))
	if mayRepeat(r) {
		return t.http1.RoundTrip(r)
	}
	return t.once.RoundTrip(r)
}

// overHTTP2 says whether a request to an app goes over HTTP/2. To one that is reached
// over TLS only gRPC does, which knows nothing else.
func overHTTP2(r *http.Request, scheme string) bool {
	switch {
	case len(r.Header["Upgrade"]) > 0:
		return false
	case scheme == agentapi.UpstreamHTTPS:
		kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
		kind = strings.TrimSpace(kind)
		return kind == "application/grpc" || strings.HasPrefix(kind, "application/grpc+")
	}
	return scheme == agentapi.UpstreamH2C
}

// mayRepeat says whether a request means the same sent twice: it reads, and has no body.
// net/http repeats these on a connection that was kept, and also what a visitor gives
// an Idempotency-Key, which is the app's to judge.
func mayRepeat(r *http.Request) bool {
	return repeatable(r.Method) && (r.Body == nil || r.Body == http.NoBody)
}

// repeatable says that of a method (RFC 9110, section 9.2.2).
func repeatable(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

func (t transports) closeIdle() {
	t.http1.CloseIdleConnections()
	t.once.CloseIdleConnections()
	t.http2.CloseIdleConnections()
}

// identifiedConn is an HTTP/1.1 connection of http.Transport to an app. The
// transport writes Host first and then all other fields in an order of its own;
// identifiedConn puts the five in right after Host. One request uses it at a time:
// the transport gives a connection out again once the request before has been
// written whole.
type identifiedConn struct {
	net.Conn
	identified bool   // trace has said at least once who asks
	heard      bool   // something came from the app; the reader's
	five       []byte // still to be written
	lines      int    // how many lines of the head have to be written before it
}

var errNotIdentified = errors.New("a request was to be sent without saying who asks")

// http2Conn is a connection to an app over which HTTP/2 is spoken. net/http forgets why
// one could not be used, so the visit it was made for is told how the app began.
type http2Conn struct {
	net.Conn
	visit *visit      // nil once something came; the reader's
	heard atomic.Bool // something came
}

func (c *http2Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.visit == nil {
		return n, err
	}
	if odd := upstream.SniffHTTP2(p[:n]); odd != nil {
		n, err = 0, odd
	}
	if n == 0 && err != nil {
		c.visit.odd.Store(&err)
	}
	c.visit = nil
	c.heard.Store(true) // after the visit knows
	return n, err
}

// Write takes an error for none while nothing came: an app that speaks something else
// says so and closes, and net/http closes at the first error of writing, perhaps before
// that is read. Reading says how it went.
func (c *http2Conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil && !c.heard.Load() && !errors.Is(err, net.ErrClosed) {
		return len(p), nil
	}
	return n, err
}

// outspokenConn is a connection to an app that carries one request. The app may answer
// before it has read all of that, that it is too large for one, and close: the rest
// cannot be sent then, while the answer is here to be read. So a request that cannot be
// sent to its end is no error. Reading says how it went.
type outspokenConn struct {
	net.Conn
	begun bool // something was sent; both are the writer's
	deaf  bool // the app takes no more
}

func (c *outspokenConn) Write(p []byte) (int, error) {
	if c.deaf {
		return len(p), nil
	}
	n, err := c.Conn.Write(p)
	if err != nil && c.begun && !errors.Is(err, net.ErrClosed) {
		c.deaf = true
		return len(p), nil
	}
	c.begun = c.begun || n > 0
	return n, err
}

// trace has the connection that a request is sent on, an old or a new one, say who
// asks.
func (f *five) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if c, ok := info.Conn.(*identifiedConn); ok {
			c.identified, c.five, c.lines = true, f.appendTo(nil), 2 // the request line and Host
		}
	}}
}

// Read looks at how the app begins: net/http would say less of what it is.
func (c *identifiedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.heard && n > 0 {
		c.heard = true
		if odd := upstream.Sniff(p[:n]); odd != nil {
			return 0, odd
		}
	}
	return n, err
}

func (c *identifiedConn) Write(p []byte) (int, error) {
	if !c.identified {
		return 0, errNotIdentified
	}
	if c.lines == 0 {
		return c.Conn.Write(p)
	}
	head := 0
	for c.lines > 0 {
		end := bytes.IndexByte(p[head:], '\n')
		if end < 0 {
			return c.Conn.Write(p)
		}
		head += end + 1
		c.lines--
	}
	whole := make([]byte, 0, len(p)+len(c.five))
	whole = append(append(append(whole, p[:head]...), c.five...), p[head:]...)
	c.five = nil
	n, err := c.Conn.Write(whole)
	switch added := len(whole) - len(p); {
	case n <= head:
		return n, err
	case n < head+added:
		return head, err
	default:
		return n - added, err
	}
}

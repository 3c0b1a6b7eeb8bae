package gate

import (
	"context"
	"net"
	"net/http"

	"porchlight/agent/proxy/http1"
	"porchlight/agent/proxy/http2"
)

// ownWay is our own way in: plain HTTP/1.1, and HTTP/2. It has the handler of net/http's
// server, which takes the rest. Its methods are called on nil where there is none.
type ownWay struct {
	base  context.Context // of connections
	http1 *http1.Server
	http2 *http2.Server
}

func newOwnWay(base context.Context, srv *http.Server, c Config) *ownWay {
	return &ownWay{
		// The ReverseProxy looks for the server in a request's context. When base ends is
		// nothing to requests, which end by themselves.
		base:  context.WithValue(context.WithoutCancel(base), http.ServerContextKey, srv),
		http1: http1.New(http1.Config{Handler: srv.Handler, State: follow, Broken: c.Broken, Log: c.Log}),
		http2: http2.New(http2.Config{Handler: srv.Handler, State: follow, TooLong: mark, Broken: c.Broken, Log: c.Log}),
	}
}

func (o *ownWay) contextOf(conn net.Conn) context.Context {
	// The Conn is outermost, because every request asks for it.
	return withConn(context.WithValue(o.base, http.LocalAddrContextKey, conn.LocalAddr()), conn)
}

// serveHTTP1 serves the plain requests of a connection; see http1.Server.Serve.
func (o *ownWay) serveHTTP1(conn *wideConn) (rest []byte, handed bool) {
	return o.http1.Serve(o.contextOf(conn), conn)
}

func (o *ownWay) newHTTP2(conn *wideConn) *http2.Conn {
	return o.http2.NewConn(o.contextOf(conn), conn)
}

func (o *ownWay) close() {
	if o != nil {
		o.http1.Close()
		o.http2.Close()
	}
}

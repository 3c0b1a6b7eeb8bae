package proxy

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"time"
)

// newTransport makes the connections to apps: loopback only, no proxy of the
// environment, nothing decoded on the way.
func newTransport(dial dialFunc, idle int) *http.Transport {
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dial,
		DisableCompression:     true,
		MaxIdleConns:           idle,
		MaxIdleConnsPerHost:    maxIdlePerApp,
		IdleConnTimeout:        maxIdleTime,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxResponseHeader,
		ReadBufferSize:         readBuffer,
		WriteBufferSize:        16 << 10,
	}
}

// upstream takes requests to apps: HTTP/1.1, or HTTP/2 without TLS to those the
// owner says speak it. A WebSocket goes over HTTP/1.1 to them as well, which is
// how servers take one.
type upstream struct{ http1, http2 *http.Transport }

func newUpstream(dial dialFunc, idle int) upstream {
	http2 := newTransport(dial, idle)
	http2.Protocols = new(http.Protocols)
	http2.Protocols.SetUnencryptedHTTP2(true)
	return upstream{http1: newTransport(identify(dial), idle), http2: http2}
}

func (u upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	v := r.Context().Value(visitKey{}).(*visit)
	if v.at.app.Options.H2C && len(r.Header["Upgrade"]) == 0 {
		// In no order, and none is needed: an HTTP/2 server that finds too many
		// fields refuses the request and reads none of it.
		v.five.setIn(r.Header)
		return u.http2.RoundTrip(r)
	}
	return u.http1.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), v.five.trace())))
}

func (u upstream) closeIdle() {
	u.http1.CloseIdleConnections()
	u.http2.CloseIdleConnections()
}

// identifiedConn is an HTTP/1.1 connection of http.Transport to an app. The
// transport writes Host first and then all other fields in an order of its own;
// identifiedConn puts the five in right after Host. One request uses it at a time:
// the transport gives a connection out again once the request before has been
// written whole.
type identifiedConn struct {
	net.Conn
	identified bool   // trace has said at least once who asks
	five       []byte // still to be written
	lines      int    // how many lines of the head have to be written before it
}

var errNotIdentified = errors.New("a request was to be sent without saying who asks")

// identify has the connections of dial say who asks.
func identify(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &identifiedConn{Conn: conn}, nil
	}
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

func (c *identifiedConn) Write(p []byte) (int, error) {
	if !c.identified {
		return 0, errNotIdentified
	}
	if c.lines == 0 {
		return c.Conn.Write(p)
	}
	at := 0
	for c.lines > 0 {
		end := bytes.IndexByte(p[at:], '\n')
		if end < 0 {
			return c.Conn.Write(p)
		}
		at += end + 1
		c.lines--
	}
	whole := make([]byte, 0, len(p)+len(c.five))
	whole = append(append(append(whole, p[:at]...), c.five...), p[at:]...)
	c.five = nil
	n, err := c.Conn.Write(whole)
	switch added := len(whole) - len(p); {
	case n <= at:
		return n, err
	case n < at+added:
		return at, err
	default:
		return n - added, err
	}
}

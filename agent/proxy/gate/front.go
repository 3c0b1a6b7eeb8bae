package gate

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"

	"porchlight/agent/proxy/limits"
	"porchlight/internal/socket"
)

// front ends TLS before a server sees a connection. Our own way takes HTTP/2
// and plain HTTP/1.1; the rest goes to net/http's server, through a strictConn.
type front struct {
	net.Listener
	conf    *tls.Config
	log     *slog.Logger
	conns   *conns
	refused func(serverName string) // nil for nobody who wants to know
	ready   chan net.Conn           // after their handshake
	ended   chan struct{}           // closed when Accept of the listener has failed
	err     error                   // why, set before ended is closed
	own     *ownWay                 // nil where tests measure it
	next    chan *Conn              // to goroutines that have shaken hands and rest; closed when no more come
	resting atomic.Int32            // how many do

	stop    context.CancelFunc
	ctx     context.Context // ends with stop
	shaking sync.WaitGroup
}

func newFront(ln net.Listener, conf *tls.Config, conns *conns, refused func(string), log *slog.Logger) *front {
	ctx, stop := context.WithCancel(context.Background())
	return &front{Listener: ln, conf: conf, log: log, conns: conns, refused: refused, ready: make(chan net.Conn), ended: make(chan struct{}), next: make(chan *Conn), ctx: ctx, stop: stop}
}

// run accepts until the listener fails or is closed, and returns once no
// handshake is under way.
func (f *front) run() {
	for {
		raw, err := f.Listener.Accept()
		if err != nil {
			f.err = err
			close(f.ended)
			break
		}
		c := f.conns.add(raw)
		if c == nil {
			abort(raw)
			continue
		}
		f.shake(c)
	}
	close(f.next)
	f.shaking.Wait()
}

// shake has a goroutine do a connection's handshake: one that did another before, where
// one rests, whose stack has grown for it.
func (f *front) shake(c *Conn) {
	select {
	case f.next <- c:
	default:
		f.shaking.Go(func() { f.shakeHands(c) })
	}
}

// shakeHands does c's handshake, and then those that come, unless enough wait for these.
func (f *front) shakeHands(c *Conn) {
	for more := true; more; {
		f.handshake(c)
		if f.resting.Add(1) > mostResting {
			f.resting.Add(-1)
			return
		}
		c, more = <-f.next
		f.resting.Add(-1)
	}
}

// mostResting is how many goroutines rest between handshakes.
const mostResting = 8

// handshake is bounded in time as the head of a request is.
func (f *front) handshake(c *Conn) {
	ctx, cancel := context.WithTimeout(f.ctx, limits.HeaderTimeout)
	defer cancel()
	var conn net.Conn
	gather := &gatherConn{Conn: socket.Wrap(c.raw), conn: c}
	secure := tls.Server(gather, f.conf)
	if err := secure.HandshakeContext(ctx); err != nil {
		f.log.Debug("a TLS handshake failed", "from", c.raw.RemoteAddr().String(), "err", err)
		gather.Close()
		if f.refused != nil && byCertificate(err) {
			f.refused(secure.ConnectionState().ServerName)
		}
		return
	}
	gather.most = 0
	switch secure.ConnectionState().NegotiatedProtocol {
	case "h2":
		if f.own != nil {
			c.http2 = f.own.newHTTP2(&wideConn{secure, gather})
		}
		conn = secure
	case "", "http/1.1":
		c.strict = &strictConn{wideConn: wideConn{secure, gather}}
		conn = c.strict
	default:
		// A certificate authority that came to see a challenge answered (RFC
		// 8737, section 3): it has, and there is nothing more to say.
		secure.Close()
		return
	}
	c.await(secure)
	// Our own way serves on a stack that no handshake has grown.
	switch {
	case f.own == nil:
		f.give(conn, gather)
	case c.http2 != nil:
		f.shaking.Go(c.http2.Serve)
	default:
		f.shaking.Go(func() { f.serveHTTP1(c) })
	}
}

// serveHTTP1 serves what is plain on a connection, and gives net/http the rest.
func (f *front) serveHTTP1(c *Conn) {
	var handed bool
	if c.strict.begun, handed = f.own.serveHTTP1(&c.strict.wideConn); handed {
		f.give(c.strict, c.strict.gather)
	}
}

// give has net/http's server take a connection.
func (f *front) give(conn net.Conn, gather *gatherConn) {
	select {
	case f.ready <- conn:
	case <-f.ctx.Done():
		gather.Close()
	}
}

// byCertificate says whether the other side ended a handshake with an alert about our
// certificate (RFC 8446, section 6.2). crypto/tls gives alerts no type of their own.
func byCertificate(err error) bool {
	alert, ok := errors.AsType[*net.OpError](err)
	return ok && alert.Op == "remote error" && strings.Contains(alert.Err.Error(), "certificate")
}

// Accept returns a connection that can carry requests.
func (f *front) Accept() (net.Conn, error) {
	select {
	case conn := <-f.ready:
		return conn, nil
	case <-f.ended:
		return nil, f.err
	}
}

// Close ends the listener and the handshakes under way.
func (f *front) Close() error {
	f.stop()
	return f.Listener.Close()
}

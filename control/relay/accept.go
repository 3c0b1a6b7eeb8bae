package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// accept takes connections until the listener is closed (nil) or fails for good.
func (r *Relay) accept(life context.Context, l net.Listener, welcome func(context.Context, net.Conn)) error {
	const shortest, longest = 5 * time.Millisecond, time.Second
	pause, tune := shortest, tuner(l)
	for {
		conn, err := l.Accept()
		if err == nil {
			pause = shortest
			tune(conn)
			welcome(life, conn)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return net.ErrClosed
		}
		if !passes(err) {
			return err
		}
		// The visits under way go on and give their files back.
		r.log.Warn("cannot accept connections just now", "err", err, "pause", pause)
		select {
		case <-time.After(pause):
		case <-life.Done():
			return net.ErrClosed
		}
		pause = min(2*pause, longest)
	}
}

// welcome starts serving conn if the limits let it in.
func (r *Relay) welcome(life context.Context, conn net.Conn) {
	c, ok := conn.(stream)
	source := sourceOf(conn.RemoteAddr())
	if !ok || !r.half.enter(source) {
		r.counters.limited.Add(1)
		_ = conn.Close()
		return
	}
	if !r.open(conn) {
		r.half.leave(source)
		_ = conn.Close()
		return
	}
	r.wg.Go(func() {
		decided := sync.OnceFunc(func() {
			r.decided(conn)
			r.half.leave(source)
		})
		defer decided()
		if r.mustAnnounce(conn) {
			visitor, err := readAnnouncement(c, r.cfg.FirstBytes)
			if err != nil {
				r.refuseAnnouncement(conn, err)
				return
			}
			// From here on it is the visitor's, under whose address it counts.
			from := sourceOf(visitor.RemoteAddr())
			if !r.half.move(source, from) {
				r.counters.limited.Add(1)
				_ = conn.Close()
				return
			}
			c, source = visitor, from
		}
		r.serve(life, c, decided)
	})
}

// refuseAnnouncement closes a balancer's connection whose header made no sense,
// and tells the operator why: either side may be set up wrongly. One that ends
// before it has said anything, or is reset, is how balancers find out whether a
// port is open.
func (r *Relay) refuseAnnouncement(conn net.Conn, err error) {
	_ = conn.Close()
	var broken net.Error
	if err == io.EOF || errors.As(err, &broken) && !broken.Timeout() {
		return
	}
	r.counters.malformed.Add(1)
	r.log.Warn("a trusted proxy sent no PROXY header", "from", conn.RemoteAddr().String(), "err", err)
}

// serve reads the first bytes and hands the connection on. decided is called
// once the connection is no longer one of the unknown.
func (r *Relay) serve(life context.Context, conn stream, decided func()) {
	p, err := readPreface(conn, r.cfg.FirstBytes)
	defer p.release()
	if err != nil {
		r.refusePreface(conn, p, err)
		return
	}
	switch {
	case p.kind == prefacePlainHTTP:
		r.counters.malformed.Add(1)
		refuse(conn, []byte(plainHTTPAnswer))
	case p.kind == prefaceData:
		decided()
		r.park(conn, p.ticket, false)
	case p.hello.serverName == r.cfg.AuthHost:
		r.terminate(life, conn, p, decided)
	default:
		r.visit(life, conn, p, decided)
	}
}

// refusePreface closes a connection whose first bytes made no sense, with an
// alert where TLS was being spoken.
func (r *Relay) refusePreface(conn net.Conn, p *preface, err error) {
	var timeout net.Error
	if errors.As(err, &timeout) || err == io.EOF || errors.Is(err, net.ErrClosed) {
		_ = conn.Close()
		return
	}
	r.counters.malformed.Add(1)
	if p.n > 0 && p.buf[headroom] == recordHandshake && (errors.Is(err, errHello) || errors.Is(err, errTooLong)) {
		p.release()
		refuse(conn, alertRecord(alertDecodeError))
		return
	}
	_ = conn.Close()
}

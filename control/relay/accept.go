package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"porchlight/control/relay/clienthello"
)

// accept takes connections until the listener is closed (nil) or fails for good.
// Where files run out, the undecided give theirs back, and who comes then is
// refused: the rest of the files is kept for other things.
func (r *Relay) accept(life context.Context, l net.Listener, welcome func(context.Context, net.Conn)) error {
	const shortest, longest = 5 * time.Millisecond, time.Second
	pause, tune := shortest, tuner(l)
	for {
		conn, err := l.Accept()
		if err == nil {
			pause = shortest
			if r.crowded(conn) && !r.sendFirst() {
				r.reached(limitFiles)
				refuseAtOnce(conn)
				continue
			}
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
		if outOfFiles(err) {
			r.reached(limitFiles)
			if r.sendFirst() {
				continue
			}
		}
		// The visits under way go on and give their files back.
		if pause == shortest && !outOfFiles(err) {
			r.log.Warn("cannot accept connections just now", "err", err)
		}
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
	if !ok {
		_ = conn.Close()
		return
	}
	waiting, sent, ok := r.door.enter(conn, sourceOf(conn.RemoteAddr()))
	if !ok {
		_ = conn.Close()
		return
	}
	r.wg.Go(func() {
		r.dismiss(sent, limitHandshakes)
		decided := sync.OnceFunc(func() { r.door.release(waiting) })
		defer decided()
		if r.mustAnnounce(conn) {
			visitor, err := readAnnouncement(c, r.cfg.FirstBytes)
			if err != nil {
				r.refuseAnnouncement(conn, err)
				return
			}
			// From here on it is the visitor's, under whose address it counts.
			r.dismiss(r.door.rename(waiting, sourceOf(visitor.RemoteAddr())), limitHandshakes)
			c = visitor
		}
		r.serve(life, c, waiting, decided)
	})
}

// dismiss closes the connection that had to leave a door for another, if one had to.
func (r *Relay) dismiss(sent *newcomer, full limit) {
	if sent != nil {
		r.reached(full)
		_ = sent.conn.Close()
	}
}

// sendFirst closes the connection that has been at the door longest, or else a stranger's
// to the auth host, and reports whether there was one.
func (r *Relay) sendFirst() bool {
	sent := r.door.sendFirst()
	if sent == nil {
		sent = r.auth.sendFirst()
	}
	r.dismiss(sent, limitFiles)
	return sent != nil
}

// crowded reports whether conn is beyond the files that strangers may have. The
// system gives out the lowest number that is free, so conn's says how many are
// taken, by strangers and others.
func (r *Relay) crowded(conn net.Conn) bool {
	if fileNumber(conn) < r.mostFiles {
		return false
	}
	r.crowdedAt.Store(r.now().UnixNano())
	return true
}

// crowdedLately says whether connections were refused for want of files within
// the last seconds.
func (r *Relay) crowdedLately() bool {
	at := r.crowdedAt.Load()
	return at != 0 && r.now().UnixNano()-at < int64(5*time.Second)
}

// refuseAnnouncement closes a balancer's connection whose header made no sense,
// and tells the operator why: either side may be set up wrongly. One that ends
// before it has said anything, or is reset, is how balancers find out whether a
// port is open.
func (r *Relay) refuseAnnouncement(conn net.Conn, err error) {
	_ = conn.Close()
	if broken, ok := errors.AsType[net.Error](err); err == io.EOF || ok && !broken.Timeout() {
		return
	}
	r.counters.malformed.Add(1)
	r.log.Warn("a trusted proxy sent no PROXY header", "from", conn.RemoteAddr().String(), "err", err)
}

// serve reads the first bytes and hands the connection on. decided is called
// once the connection is no longer one of the unknown.
func (r *Relay) serve(life context.Context, conn stream, c *newcomer, decided func()) {
	p, err := readPreface(conn, r.cfg.FirstBytes)
	defer p.release()
	if err != nil {
		r.refusePreface(conn, p, err)
		return
	}
	r.door.heard(c)
	switch {
	case p.kind == prefacePlainHTTP:
		r.answerPlainHTTP(conn, p)
	case p.kind == prefaceData:
		decided()
		r.park(conn, p.ticket, false)
	case p.hello.ServerName == r.cfg.AuthHost:
		r.terminate(life, conn, p, decided)
	default:
		r.visit(life, conn, p, decided)
	}
}

// refusePreface closes a connection whose first bytes made no sense, with an
// alert where TLS was being spoken.
func (r *Relay) refusePreface(conn net.Conn, p *preface, err error) {
	if _, broken := errors.AsType[net.Error](err); broken || err == io.EOF || errors.Is(err, net.ErrClosed) {
		_ = conn.Close()
		return
	}
	r.counters.malformed.Add(1)
	if p.n > 0 && p.buf[headroom] == clienthello.Handshake && (errors.Is(err, clienthello.ErrMalformed) || errors.Is(err, clienthello.ErrTooLong)) {
		p.release()
		refuse(conn, alertRecord(alertDecodeError))
		return
	}
	_ = conn.Close()
}

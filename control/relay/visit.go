package relay

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"porchlight/control/controlapi/tunnelwire"
	"porchlight/control/relay/clienthello"
	"porchlight/control/relay/peers"
)

const (
	// visitTries is how many data connections may turn out dead for one visitor.
	visitTries = 4
	// firstAnswer is how long the visitor's first bytes are kept for another
	// data connection. An agent answers a ClientHello much sooner; one that takes
	// longer has at least not gone.
	firstAnswer = time.Second
)

// errLookup says that it could not be found out where a name leads.
var errLookup = errors.New("relay: nobody says where this name leads")

// errDied says that a data connection ended before the agent said anything.
var errDied = errors.New("relay: the data connection had died")

// visit joins a visitor to a data connection of the computer it names. One who
// names none that is here stays counted among the undecided until turned away.
func (r *Relay) visit(life context.Context, conn stream, p *preface, decided func()) {
	source := sourceOf(conn.RemoteAddr())
	if err := r.resolve(life, p); err != nil {
		r.turnAway(conn, p, err)
		return
	}
	c, err := r.routes.enter(p.hello.ServerName, source, r.now())
	if errors.Is(err, errUnknownHost) {
		if err = r.forward(life, conn, p, decided); err == nil {
			return
		}
	}
	if err != nil {
		r.turnAway(conn, p, err)
		return
	}
	if !r.visitors.enter(source) {
		r.routes.release(c, source)
		r.turnAway(conn, p, overLimit(limitVisitors))
		return
	}
	decided()
	if err = r.handOver(life, conn, p, c, source); err == nil {
		return // the flow has taken over
	}
	r.visitors.release(source)
	r.routes.release(c, source)
	// A tunnel that died here may have come back elsewhere.
	if mayBeElsewhere(err) && life.Err() == nil {
		elsewhere := r.forward(life, conn, p, decided)
		if elsewhere == nil {
			return
		}
		if !errors.Is(elsewhere, errUnknownHost) {
			err = elsewhere
		}
	}
	r.turnAway(conn, p, err)
}

// handOver joins a visitor to a data connection of a computer whose tunnel ends here, and
// tries others where one turns out dead.
func (r *Relay) handOver(life context.Context, conn stream, p *preface, c *computer, source netip.Prefix) (err error) {
	deadline := time.Now().Add(r.cfg.VisitorWait)
	// Whoever could answer a certificate authority's challenge would get a
	// certificate: it must not be seen between here and the agent.
	secure := p.hello.Offers(clienthello.ACME)
	for range visitTries {
		s := r.routes.session(c)
		if s == nil {
			return errUnknownHost
		}
		var data *dataConn
		if data, err = s.dataConn(secure, c, source, deadline); err != nil {
			if errors.Is(err, errSessionOver) && life.Err() == nil {
				continue // the agent may have come back on another
			}
			return err
		}
		if err = r.present(conn, p, c, s, data); err == nil {
			if node, ok := passedBy(conn); ok {
				r.askToCome(c, s, node)
			}
			return nil
		}
		_ = data.Close()
		if !errors.Is(err, errDied) {
			return err
		}
		r.counters.retried.Add(1)
	}
	return err
}

// mayBeElsewhere says of a failure that it was the tunnel's, and that the
// visitor has been told nothing.
func mayBeElsewhere(err error) bool {
	return errors.Is(err, errUnknownHost) || errors.Is(err, errSessionOver) || errors.Is(err, errDied) || errors.Is(err, errNoConnection)
}

// present writes the header and the visitor's first bytes, passes the first
// answer on and starts the flow, which then owns both connections. With errDied
// nothing has reached the visitor and another data connection may be tried.
func (r *Relay) present(conn stream, p *preface, c *computer, s *session, data *dataConn) error {
	_, passed := passedBy(conn)
	f := &flow{visitor: withoutHeader(conn), agent: data.stream, ticket: data.ticket, passed: passed}
	// From here on a kick finds the flow and ends it.
	if !r.routes.join(c, s, f) {
		return errSessionOver
	}
	fail := func(err error) error {
		r.routes.unjoin(c, f)
		return err
	}
	// The header goes right in front of the peeked bytes: one write for both.
	source, destination := addrPort(conn.RemoteAddr()), addrPort(conn.LocalAddr())
	start := headroom - tunnelwire.HeaderSize(source, destination)
	s.key.AppendHeader(p.buf[:start], data.ticket, source, destination)
	first := p.buf[start : headroom+p.n]
	sent := int64(p.n)
	if err := data.SetDeadline(time.Now().Add(firstAnswer)); err != nil {
		return fail(errDied)
	}
	if _, err := data.Write(first); err != nil {
		return fail(errDied)
	}
	s.cameThrough(data)
	answered, err := f.firstAnswer()
	if err != nil {
		return fail(err)
	}
	p.release()
	if err := data.SetDeadline(time.Time{}); err != nil {
		return fail(err)
	}
	r.counters.visits.Add(1)
	f.delivered = [2]int64{toAgent: sent, toVisitor: answered}
	r.start(f, c, sourceOf(conn.RemoteAddr()))
	return nil
}

// start has f, which joined c, begin, and at its end counts its visitor out.
func (r *Relay) start(f *flow, c *computer, source netip.Prefix) {
	r.wg.Add(1)
	f.ended = func(up, down int64) {
		r.counters.bytesUp.Add(uint64(up))
		r.counters.bytesDown.Add(uint64(down))
		if r.cfg.Carried != nil && c.id != "" { // those passed on are counted where they went
			r.cfg.Carried(c.id, up, down)
		}
		r.visitors.release(source)
		r.routes.partWith(c, f, source)
		r.wg.Done()
	}
	f.start()
}

// firstAnswer passes the agent's first bytes on, if some come within the
// deadline that is set, and returns how many. errDied says that none ever will.
func (f *flow) firstAnswer() (int64, error) {
	r := newReader(f.agent)
	f.ways[toVisitor].from = r
	buf, n, err := r.read()
	if n == 0 {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, nil
		}
		return 0, errDied
	}
	defer copyBuffers.Put(buf)
	_, err = f.visitor.Write(buf[:n])
	return int64(n), err
}

// turnAway closes a visitor with the alert that fits. That a name is unrecognized is
// said only where that is certain; internal_error is TLS's word for what is "unrelated
// to the peer" (RFC 8446, 6.2) and speaks of this moment alone.
func (r *Relay) turnAway(conn net.Conn, p *preface, err error) {
	p.release()
	// Of one that another node sent that node was told that the tunnel is here.
	_, passedOn := passedBy(conn)
	switch {
	case errors.Is(err, errUnknownHost) && !passedOn, errors.Is(err, errSuspended):
		r.counters.unknown.Add(1)
		refuse(conn, alertRecord(alertUnrecognizedName))
	case errors.Is(err, errSessionOver), passedOn && errors.Is(err, errUnknownHost): // it was here a moment ago
		r.counters.unknown.Add(1)
		refuse(conn, alertRecord(alertInternalError))
	case errors.Is(err, errNoConnection), errors.Is(err, peers.ErrNoAnswer), errors.Is(err, errLookup):
		r.counters.timedOut.Add(1)
		refuse(conn, alertRecord(alertInternalError))
	case errors.Is(err, errBusy):
		r.reachedBy(err)
		refuse(conn, alertRecord(alertInternalError))
	default:
		_ = conn.Close()
	}
}

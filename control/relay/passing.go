package relay

import (
	"context"
	"errors"
	"net"
	"sync"

	"porchlight/control/controlapi"
	"porchlight/control/relay/clienthello"
	"porchlight/control/relay/peers"
)

// peersEntering bounds the connections of peers that have not yet made a request.
const peersEntering = 1024

// RelaysFor are the relays a computer's agent should be connected to, two of them where
// there are as many, and behind them the spare ones: the same whichever node is asked.
// It is nil without peers.
func (r *Relay) RelaysFor(computerID string) []controlapi.Relay {
	if r.peers == nil {
		return nil
	}
	return r.peers.RelaysFor(computerID)
}

// Held says whether a node has the tunnel of a root host, and whether that is sure.
func (r *Relay) Held(ctx context.Context, host string) (held, sure bool) {
	if r.peers == nil || r.routes.holds(host) {
		return r.routes.holds(host), true
	}
	return r.peers.Held(ctx, host)
}

// CutOff says that neither the store nor any other node of this service answers.
func (r *Relay) CutOff() bool { return r.peers != nil && r.peers.CutOff() }

// ServesNobody says that a visitor who comes here cannot get anywhere: the node is cut
// off, and no computer is connected to it.
func (r *Relay) ServesNobody() bool { return r.CutOff() && len(r.routes.sessions()) == 0 }

// Nodes are the nodes that are there, by name; this one alone where it has no peers.
func (r *Relay) Nodes() []peers.Node {
	if r.peers == nil {
		return []peers.Node{{Name: r.cfg.Node, Draining: r.draining.Load(), This: true}}
	}
	return r.peers.Nodes()
}

// Leave has nobody sent here any more by names, before the node drains.
func (r *Relay) Leave() {
	if r.peers != nil {
		r.peers.Leave()
	}
}

// touch tells the other nodes that a tunnel for host came or went.
func (r *Relay) touch(host string) {
	if r.peers != nil {
		r.peers.Touch(host)
	}
}

// forward passes a visitor on to the node that has the tunnel. With a nil error
// the flow has taken over; otherwise nothing has been said to the visitor. No visitor is
// passed on twice.
func (r *Relay) forward(life context.Context, conn stream, p *preface, decided func()) error {
	if _, passedOn := passedBy(conn); passedOn || r.peers == nil {
		return errUnknownHost
	}
	found, err := r.peers.Find(life, p.hello.ServerName)
	if errors.Is(err, peers.ErrBusy) {
		return overLimit(limitLookups)
	}
	if err != nil {
		return err
	}
	defer found.Done()
	source := sourceOf(conn.RemoteAddr())
	if !r.visitors.enter(source) {
		return overLimit(limitVisitors)
	}
	away, err := r.routes.enterAway(source)
	if err != nil {
		r.visitors.release(source)
		return err
	}
	decided()
	peer, err := found.Call(life, peers.Visit{Source: addrPort(conn.RemoteAddr()), Destination: addrPort(conn.LocalAddr()), First: p.bytes()})
	if err == nil {
		raw, _ := peer.Raw()
		tuner(nil)(raw)
		f := &flow{visitor: withoutHeader(conn), agent: withoutHeader(peer), passed: true}
		if r.routes.join(away, nil, f) {
			f.delivered = [2]int64{toAgent: int64(p.n)}
			p.release()
			r.counters.passedOn.Add(1)
			r.start(f, away, source)
			return nil
		}
		peer.Reset()
		err = errSessionOver
	}
	r.visitors.release(source)
	r.routes.release(away, source)
	return err
}

// passedBy is the node that has passed a visitor on to this one, if one has.
func passedBy(conn net.Conn) (node string, ok bool) {
	if peer, ok := conn.(interface{ From() string }); ok {
		return peer.From(), true
	}
	return "", false
}

// welcomePeer serves a connection of another node, if there is room.
func (r *Relay) welcomePeer(life context.Context, conn net.Conn) {
	raw, ok := conn.(*net.TCPConn)
	if !ok {
		_ = conn.Close()
		return
	}
	select {
	case r.peersEntering <- struct{}{}:
	default:
		r.reached(limitPeers)
		_ = conn.Close()
		return
	}
	// Draining does not end these: parked connections still serve, and deadlines
	// bound what is before that.
	r.wg.Go(func() {
		decided := sync.OnceFunc(func() { <-r.peersEntering })
		defer decided()
		if err := r.servePeer(life, raw, decided); err != nil {
			_ = conn.Close()
			r.counters.peerFailures.Add(1)
			r.log.Info("a peer's connection was refused", "from", conn.RemoteAddr().String(), "err", err)
		}
	})
}

// servePeer takes over a visitor from another node, and joins it to its computer.
func (r *Relay) servePeer(life context.Context, raw *net.TCPConn, decided func()) error {
	p := &preface{buf: fullBuffers.Get().(*[headroom + clienthello.MaxSize]byte)[:]}
	defer p.release()
	visitor, n, err := r.peers.Receive(life, raw, p.buf[headroom:])
	if err != nil || visitor == nil {
		return err
	}
	if err := p.parseHello(n); err != nil {
		return err
	}
	if err := r.resolve(life, p); err != nil || !r.routes.knows(p.hello.ServerName) {
		return visitor.Decline()
	}
	// Who answers a certificate authority's challenge stays inside the nodes' TLS.
	if err := visitor.Take(!p.hello.Offers(clienthello.ACME)); err != nil {
		return err
	}
	r.counters.takenOver.Add(1)
	r.visit(life, visitor, p, decided)
	return nil
}

// errPeerRequest says that the first bytes are no visitor's.
var errPeerRequest = errors.New("relay: not the request of a peer")

// parseHello reads the n first bytes, which must be a whole ClientHello.
func (p *preface) parseHello(n int) error {
	p.n = n
	if done, err := p.parse(&clienthello.Reader{}); err != nil || !done || p.kind != prefaceTLS {
		return errors.Join(errPeerRequest, err)
	}
	return nil
}

package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

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

// servePeer takes over a visitor from another node.
func (r *Relay) servePeer(life context.Context, conn *net.TCPConn, decided func()) error {
	if err := conn.SetDeadline(time.Now().Add(peerHandshake)); err != nil {
		return err
	}
	_, _, takes := r.peerTLS.known()
	secure := tls.Server(conn, takes)
	ctx, cancel := context.WithTimeout(life, peerHandshake)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		return err
	}
	if got := secure.ConnectionState().NegotiatedProtocol; got != peerALPN {
		return fmt.Errorf("it speaks %q", got)
	}
	if err := secure.SetDeadline(time.Now().Add(peerAnswer)); err != nil {
		return err
	}
	from, err := peerName(secure.ConnectionState())
	if err != nil {
		return err
	}
	p := &preface{buf: fullBuffers.Get().(*[headroom + maxPreface]byte)[:]}
	defer p.release()
	visitor := &peerStream{stream: secure, raw: conn, from: from}
	err = visitor.readRequest(p)
	if err == io.EOF {
		return conn.Close() // it only asked whether we are there
	}
	if err != nil {
		return err
	}
	return r.takeOver(life, visitor, p, decided)
}

// takeOver answers a peer's request and joins the visitor to its computer.
func (r *Relay) takeOver(life context.Context, visitor *peerStream, p *preface, decided func()) error {
	if !r.routes.knows(p.hello.serverName) {
		_, err := visitor.Write([]byte{peerUnknown})
		_ = visitor.Close() // who asked may have gone with the answer
		return err
	}
	answer := byte(peerBare)
	if p.hello.offers(acmeALPN) {
		answer = peerHere
	}
	if _, err := visitor.Write([]byte{answer}); err != nil {
		return err
	}
	if answer == peerBare { // who asked has said nothing since
		visitor.stream = visitor.raw
	}
	if err := visitor.SetDeadline(time.Time{}); err != nil {
		return err
	}
	r.counters.takenOver.Add(1)
	r.visit(life, visitor, p, decided)
	return nil
}

// readRequest reads who visits and with which first bytes, which it puts where
// those of other visitors are.
func (s *peerStream) readRequest(p *preface) error {
	var head [peerHead]byte
	if _, err := io.ReadFull(s, head[:]); err != nil {
		return err
	}
	source, destination, n, err := parsePeerHead(head)
	if err != nil {
		return err
	}
	s.remote, s.local = net.TCPAddrFromAddrPort(source), net.TCPAddrFromAddrPort(destination)
	if _, err := io.ReadFull(s, p.buf[headroom:headroom+n]); err != nil {
		return err
	}
	return p.parseHello(n)
}

// parseHello reads the n first bytes, which must be a whole ClientHello.
func (p *preface) parseHello(n int) error {
	p.n = n
	if done, err := p.parse(&helloReader{}); err != nil || !done || p.kind != prefaceTLS {
		return errors.Join(errPeerRequest, err)
	}
	return nil
}

package peers

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"
)

// A visitor who lands on a node without the tunnel is passed on to the node that
// has it, over a connection of its own between the two. The first node sends a
// request (the visitor's address, the one it connected to, and its first bytes),
// the second answers with one byte, and from then on both copy. No visitor is
// passed on twice. The connection is TLS, in which both sides have shown that they
// belong to this control plane, up to that byte: what the visitor says after the
// ClientHello is TLS of its own, which a second layer would make six times as dear, and
// the kernel moves it. Who answers a certificate authority's challenge stays inside.
const (
	peerHead = 2*(16+2) + 2 // bytes: two addresses with ports, and a length

	peerHere    = 1 // the tunnel is here
	peerUnknown = 2 // it is not, any more
	peerBare    = 3 // it is here, and what follows is not inside the nodes' TLS

	peerDial      = 2 * time.Second
	peerHandshake = 5 * time.Second
	peerAnswer    = 3 * time.Second
	// peersTried is how many nodes one visitor is offered to.
	peersTried = 2
)

// Conn is a connection between two nodes that stands for a visitor's.
type Conn struct {
	stream        // the TLS on raw, or raw where what is said is bare
	raw           *net.TCPConn
	remote, local net.Addr
	from          string // the node that passes the visitor on, where it is received
}

// stream is a connection of which one way can end before the other.
type stream interface {
	net.Conn
	CloseWrite() error
}

func (c *Conn) RemoteAddr() net.Addr { return c.remote }
func (c *Conn) LocalAddr() net.Addr  { return c.local }

// From is the node that passes the visitor on.
func (c *Conn) From() string { return c.from }

// Raw is the connection itself, and whether what is said by it is bare, so that the kernel
// can move it.
func (c *Conn) Raw() (raw *net.TCPConn, bare bool) { return c.raw, c.stream == stream(c.raw) }

// Reset ends the connection in a way that the other side does not take for the
// end of the stream.
func (c *Conn) Reset() {
	_ = c.raw.SetLinger(0)
	_ = c.raw.Close()
}

var (
	// ErrUnknownHost says that no node has a tunnel for a name.
	ErrUnknownHost = errors.New("peers: no tunnel for this name")
	// ErrNoAnswer says that no node that may have it answers, or that it is moving.
	ErrNoAnswer = errors.New("peers: nobody who may have the tunnel answers")
	// ErrBusy says that nodes are asked for too many visitors already.
	ErrBusy = errors.New("peers: other nodes are asked for too many visitors")
)

// Visit is a visitor to be passed on: the two addresses, and the first bytes, which are a
// whole ClientHello.
type Visit struct {
	Source, Destination netip.AddrPort
	First               []byte
}

// Found are the nodes to which a visitor may be offered. Done must be called.
type Found struct {
	findings
	peers      *Peers
	serverName string
}

// Find looks for the nodes where a tunnel for a server name is.
func (p *Peers) Find(ctx context.Context, serverName string) (*Found, error) {
	f := p.find(ctx, serverName)
	found := &Found{findings: f, peers: p, serverName: serverName}
	switch {
	case len(f.nodes) == 0:
		return nil, f.nowhere()
	case f.sure:
		return found, nil
	}
	select {
	case p.asks <- struct{}{}:
		return found, nil
	default:
		return nil, ErrBusy
	}
}

// Done says that nobody is asked for this visitor any more.
func (f *Found) Done() {
	if !f.sure {
		<-f.peers.asks
	}
}

// Call offers a visitor to the nodes, one after the other, until one takes it.
func (f *Found) Call(life context.Context, v Visit) (*Conn, error) {
	round, tried := life, peersTried
	if !f.sure {
		var enough context.CancelFunc
		round, enough = context.WithTimeout(life, askedFor)
		defer enough()
		tried = askedMost
	}
	for node := range f.each(tried) {
		conn, err := f.peers.offer(round, f.sure, node, v)
		switch {
		case err == nil:
			if !f.sure {
				f.peers.heldBy(f.serverName, node)
			}
			return conn, nil
		case errors.Is(err, ErrUnknownHost): // it was there, or may be: it is moving
		case round.Err() != nil: // its time was cut short, which says nothing about it
			return nil, ErrNoAnswer
		default:
			f.peers.failures.Add(1)
			f.peers.unreachable(node)
			f.peers.cfg.Log.Warn("a relay of this service does not answer", "node", node.Node, "address", node.Peer, "err", err)
		}
	}
	return nil, ErrNoAnswer
}

// offer calls a node; one that was not named for this visitor gets less time.
func (p *Peers) offer(round context.Context, sure bool, node nodeRow, v Visit) (*Conn, error) {
	if sure {
		return p.call(round, node, v)
	}
	ctx, cancel := context.WithTimeout(round, peerDial)
	defer cancel()
	return p.call(ctx, node, v)
}

// call offers a visitor to a node. ErrUnknownHost says that the tunnel is not there.
func (p *Peers) call(ctx context.Context, node nodeRow, v Visit) (*Conn, error) {
	limited, cancel := context.WithTimeout(ctx, peerDial)
	defer cancel()
	raw, err := dialPeer(limited, node)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(&byRecord{Conn: raw}, p.keys.client(node.Node))
	peer := &Conn{stream: secure, raw: raw, remote: raw.RemoteAddr(), local: raw.LocalAddr()}
	if err = secure.HandshakeContext(limited); err == nil {
		err = peer.ask(ctx, appendPeerRequest(nil, v.Source, v.Destination, v.First), peerAnswer)
	}
	if err != nil {
		peer.Reset()
		return nil, err
	}
	return peer, nil
}

func dialPeer(ctx context.Context, node nodeRow) (*net.TCPConn, error) {
	dialer := net.Dialer{KeepAlive: -1}
	dialer.SetMultipathTCP(false) // such a connection cannot be spliced
	raw, err := dialer.DialContext(ctx, "tcp", node.Peer)
	if err != nil {
		return nil, err
	}
	return raw.(*net.TCPConn), nil
}

// ask sends a request and reads the answer, for which it waits so long, and no longer
// than ctx says.
func (c *Conn) ask(ctx context.Context, request []byte, wait time.Duration) error {
	until := time.Now().Add(wait)
	if end, ok := ctx.Deadline(); ok && end.Before(until) {
		until = end
	}
	if err := c.SetDeadline(until); err != nil {
		return err
	}
	if _, err := c.Write(request); err != nil {
		return err
	}
	var answer [1]byte
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		return err
	}
	switch answer[0] {
	case peerBare:
		c.stream = c.raw
		fallthrough
	case peerHere:
		return c.SetDeadline(time.Time{})
	case peerUnknown:
		return ErrUnknownHost
	}
	return fmt.Errorf("it answered with %d", answer[0])
}

// byRecord reads no further than to the end of a record of TLS, so that what follows the
// last one is left to who reads the connection itself.
type byRecord struct {
	net.Conn
	head [5]byte // type, version and length (RFC 8446, 5.1)
	read int     // of head
	left int     // of the record behind it
}

func (r *byRecord) Read(b []byte) (int, error) {
	if r.read < len(r.head) {
		n, err := r.Conn.Read(b[:min(len(b), len(r.head)-r.read)])
		r.read += copy(r.head[r.read:], b[:n])
		r.left = int(binary.BigEndian.Uint16(r.head[3:]))
		return n, err
	}
	n, err := r.Conn.Read(b[:min(len(b), r.left)])
	if r.left -= n; r.left == 0 {
		r.read = 0
	}
	return n, err
}

// appendPeerRequest writes the two addresses, as IPv6 with port, and the
// visitor's first bytes behind their length.
func appendPeerRequest(b []byte, source, destination netip.AddrPort, first []byte) []byte {
	for _, ap := range []netip.AddrPort{source, destination} {
		ip := netip.IPv6Unspecified()
		if ap.IsValid() {
			ip = ap.Addr()
		}
		sixteen := ip.As16()
		b = append(b, sixteen[:]...)
		b = binary.BigEndian.AppendUint16(b, ap.Port())
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(first)))
	return append(b, first...)
}

// parsePeerHead reads what comes before the first bytes, of which there are n.
func parsePeerHead(b [peerHead]byte) (source, destination netip.AddrPort, n int) {
	at := func(b []byte) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[:16])).Unmap(), binary.BigEndian.Uint16(b[16:]))
	}
	return at(b[:18]), at(b[18:36]), int(binary.BigEndian.Uint16(b[36:]))
}

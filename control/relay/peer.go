package relay

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
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
	// peersEntering bounds the connections of peers that have not yet made a
	// request.
	peersEntering = 1024
	// peersTried is how many nodes one visitor is offered to.
	peersTried = 2
)

// Peers makes a relay one of several that share a store. Store, Secrets,
// Listener, Address, Relay, Domain, News, Hold, Holders and Unheard are required.
type Peers struct {
	Store   kv.Store
	Secrets Secrets
	// Listener takes connections of other nodes; Serve closes it.
	Listener net.Listener
	// Address is the host:port at which other nodes reach Listener.
	Address string
	// Relay is where agents reach this node.
	Relay controlapi.Relay
	// Domain is the parent of all computers' hosts.
	Domain string
	// Changed is called when RelaysFor may answer something else; nil for nobody. It
	// must not block.
	Changed func()
	// Run is random, of this run of the program; without it the relay makes one.
	Run string
	// Version of the program, for whoever looks which nodes live.
	Version string
	// News is the host:port where other nodes tell this one news.
	News func() string
	// Neighbours is called with the other nodes that live, whenever they are
	// others than before; nil for nobody.
	Neighbours func([]Neighbour)
	// Hold tells the other nodes whether this one has the tunnel of a host, as holds says
	// while it is called. Holders asks which of them have it: their runs, most at most,
	// the likeliest first; where nobody says so, without are the runs that surely do not.
	// Unheard are the runs of the nodes that live and were not heard for so long.
	Hold    func(host string, holds func(host string) bool)
	Holders func(ctx context.Context, host string, most int) (runs, without []string)
	Unheard func(long time.Duration) (runs []string)
}

// Neighbour is another node of the same control plane.
type Neighbour struct {
	Node, Run string
	News      string // where it hears news
}

var nodePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// ValidNode says whether a node that has peers can have that name: small
// letters, digits and hyphens, at most 63.
func ValidNode(name string) bool { return nodePattern.MatchString(name) }

func (p Peers) check(node string) error {
	switch {
	case !ValidNode(node):
		return fmt.Errorf("relay: a node with peers needs a name of small letters, digits and hyphens, not %q", node)
	case p.Store == nil || p.Listener == nil || p.Address == "" || p.Domain == "" || p.Relay.Address == "":
		return errors.New("relay: Peers lacks a store, a listener, an address, a domain or a relay")
	case p.News == nil || p.Hold == nil || p.Holders == nil || p.Unheard == nil:
		return errors.New("relay: Peers lacks news")
	}
	return nil
}

// RelaysFor are the relays a computer's agent should be connected to, two of them where
// there are as many, and behind them the spare ones: the same whichever node is asked.
// It is nil without peers.
func (r *Relay) RelaysFor(computerID string) []controlapi.Relay {
	if r.directory == nil {
		return nil
	}
	return r.directory.relaysFor(computerID)
}

// affinity orders nodes differently for each computer.
func affinity(computerID, node string) uint64 {
	sum := sha256.Sum256([]byte(computerID + "\x00" + node))
	return binary.BigEndian.Uint64(sum[:])
}

// touch tells the directory that a tunnel for host came or went.
func (r *Relay) touch(host string) {
	if r.directory != nil {
		r.directory.touch(host)
	}
}

// peerStream is a connection between two nodes that stands for a visitor's.
type peerStream struct {
	stream        // the TLS on raw, or raw where what is said is bare
	raw           *net.TCPConn
	remote, local net.Addr
	from          string // the node that passes the visitor on, where it is taken over
}

func (s *peerStream) RemoteAddr() net.Addr { return s.remote }
func (s *peerStream) LocalAddr() net.Addr  { return s.local }

// reset ends the connection in a way that the other side does not take for the
// end of the stream.
func (s *peerStream) reset() {
	_ = s.raw.SetLinger(0)
	_ = s.raw.Close()
}

// forward passes a visitor on to the node that has the tunnel. With a nil error
// the flow has taken over; otherwise nothing has been said to the visitor.
func (r *Relay) forward(life context.Context, conn stream, p *preface, decided func()) error {
	if _, passedOn := conn.(*peerStream); passedOn || r.directory == nil {
		return errUnknownHost
	}
	found := r.directory.find(life, p.hello.serverName)
	if len(found.nodes) == 0 {
		return found.nowhere()
	}
	tried := peersTried
	if !found.sure {
		if tried = askedMost; !r.directory.mayAsk() {
			return overLimit(limitLookups)
		}
		defer r.directory.asked()
	}
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
	round, enough := found.round(life)
	defer enough()
	for node := range found.each(tried) {
		var peer *peerStream
		if peer, err = r.offer(round, found.sure, node, conn, p); err == nil {
			f := &flow{visitor: withoutHeader(conn), agent: withoutHeader(peer), passed: true}
			if !r.routes.join(away, nil, f) {
				peer.reset()
				err = errSessionOver
				break
			}
			f.delivered = [2]int64{toAgent: int64(p.n)}
			if !found.sure {
				r.directory.heldBy(p.hello.serverName, node)
			}
			p.release()
			r.counters.passedOn.Add(1)
			r.wg.Add(1)
			f.ended = func(up, down int64) {
				r.counters.bytesUp.Add(uint64(up))
				r.counters.bytesDown.Add(uint64(down))
				r.visitors.release(source)
				r.routes.part(away, f, source)
				r.wg.Done()
			}
			f.start()
			return nil
		}
		if errors.Is(err, errUnknownHost) {
			err = errNoConnection // it was there, or may be: it is moving
			continue
		}
		if round.Err() != nil {
			err = errNoConnection // its time was cut short, which says nothing about it
			break
		}
		r.counters.peerFailures.Add(1)
		r.directory.unreachable(node)
		r.log.Warn("a relay of this service does not answer", "node", node.Node, "address", node.Peer, "err", err)
		err = errNoConnection
	}
	r.visitors.release(source)
	r.routes.release(away, source)
	return err
}

// offer calls a node; one that was not named for this visitor gets less time.
func (r *Relay) offer(round context.Context, sure bool, node nodeRow, conn stream, p *preface) (*peerStream, error) {
	if sure {
		return r.callPeer(round, node, conn, p)
	}
	ctx, cancel := context.WithTimeout(round, peerDial)
	defer cancel()
	return r.callPeer(ctx, node, conn, p)
}

// callPeer offers a visitor to a node. errUnknownHost says that the tunnel is not there.
func (r *Relay) callPeer(ctx context.Context, node nodeRow, conn stream, p *preface) (*peerStream, error) {
	limited, cancel := context.WithTimeout(ctx, peerDial)
	defer cancel()
	raw, err := dialPeer(limited, node)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(&byRecord{Conn: raw}, r.peerTLS.client(node.Node))
	peer := &peerStream{stream: secure, raw: raw, remote: raw.RemoteAddr(), local: raw.LocalAddr()}
	if err = secure.HandshakeContext(limited); err == nil {
		err = peer.ask(ctx, appendPeerRequest(nil, addrPort(conn.RemoteAddr()), addrPort(conn.LocalAddr()), p.bytes()), peerAnswer)
	}
	if err != nil {
		peer.reset()
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
	tuner(nil)(raw)
	return raw.(*net.TCPConn), nil
}

// ask sends a request and reads the answer, for which it waits so long, and no longer
// than ctx says.
func (s *peerStream) ask(ctx context.Context, request []byte, wait time.Duration) error {
	until := time.Now().Add(wait)
	if end, ok := ctx.Deadline(); ok && end.Before(until) {
		until = end
	}
	if err := s.SetDeadline(until); err != nil {
		return err
	}
	if _, err := s.Write(request); err != nil {
		return err
	}
	var answer [1]byte
	if _, err := io.ReadFull(s, answer[:]); err != nil {
		return err
	}
	switch answer[0] {
	case peerBare:
		s.stream = s.raw
		fallthrough
	case peerHere:
		return s.SetDeadline(time.Time{})
	case peerUnknown:
		return errUnknownHost
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

var errPeerRequest = errors.New("relay: not the request of a peer")

// parsePeerHead reads what comes before the first bytes, of which there are n.
func parsePeerHead(b [peerHead]byte) (source, destination netip.AddrPort, n int, err error) {
	at := func(b []byte) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[:16])).Unmap(), binary.BigEndian.Uint16(b[16:]))
	}
	n = int(binary.BigEndian.Uint16(b[36:]))
	if n == 0 || n > maxPreface {
		return source, destination, 0, errPeerRequest
	}
	return at(b[:18]), at(b[18:36]), n, nil
}

package tunnel

import (
	"crypto/tls"
	"net"
	"sync/atomic"
	"time"

	"porchlight/control/controlapi/tunnelwire"
	"porchlight/internal/socket"
)

// acceptWait is how long a visitor waits for somebody to accept it.
const acceptWait = 10 * time.Second

// visitorConn is a data connection seen as the connection its visitor opened.
type visitorConn struct {
	net.Conn
	rest                []byte // read with the header, not yet given on
	source, destination *net.TCPAddr
	session             *session // by which it came
	ticket              tunnelwire.Ticket
	letIn               atomic.Bool
	ended               func() // counts the visit out, where it came by an extra session; else nil
}

// LetIn says that the visitor has shown to be somebody who may come in: the relays
// keep places for its address.
func (c *visitorConn) LetIn() {
	c.letIn.Store(true)
	c.session.tunnel.letIn(c.source.AddrPort().Addr())
}

func (c *visitorConn) Read(b []byte) (int, error) {
	if len(c.rest) > 0 {
		n := copy(b, c.rest)
		if c.rest = c.rest[n:]; len(c.rest) == 0 {
			c.rest = nil
		}
		return n, nil
	}
	return c.Conn.Read(b)
}

// Close ends the visit.
func (c *visitorConn) Close() error {
	c.finish()
	return c.Conn.Close()
}

func (c *visitorConn) finish() {
	if c.ended != nil {
		c.ended()
	}
}

// CloseWrite ends our side of the stream; the visitor's may go on.
func (c *visitorConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Conn.Close()
}

// Cut ends the connection at once and waits for nobody: not for a peer to take
// what was written, nor for TLS to say goodbye. The relay sees a reset and drops
// the visitor too, where after an end in order it would wait for theirs; one that the
// network keeps that from is told by name. The connection is still to be closed. False
// where the system cannot; see socket.Cut.
func (c *visitorConn) Cut() bool {
	if !socket.Cut(c.below()) {
		return false
	}
	c.aborted()
	return true
}

// Abort is Cut, as far as the system can, and closes the connection, which waits for
// those who read.
func (c *visitorConn) Abort() error {
	defer c.aborted()
	c.finish()
	conn := c.below()
	if tcp, ok := conn.(interface{ SetLinger(sec int) error }); ok && !socket.Cut(conn) {
		_ = tcp.SetLinger(0) // one that is closed already needs none
	}
	return conn.Close()
}

// aborted notes the visit, if it is one of somebody who was let in: those who are turned
// away are many and have nothing open.
func (c *visitorConn) aborted() {
	if c.letIn.Load() {
		c.session.aborted(c.ticket)
	}
}

// Stranded says that the session which the visitor came by has ended: what is written may
// be lost, and only of Cut or Abort the relay is sure to hear.
func (c *visitorConn) Stranded() bool { return c.session.ctx.Err() != nil }

// below is the connection below TLS, where there is any.
func (c *visitorConn) below() net.Conn {
	if secured, ok := c.Conn.(*tls.Conn); ok {
		return secured.NetConn()
	}
	return c.Conn
}

// RemoteAddr is the visitor's address, as the relay vouches for it.
func (c *visitorConn) RemoteAddr() net.Addr { return c.source }

// LocalAddr is the address the visitor connected to, the relay's.
func (c *visitorConn) LocalAddr() net.Addr { return c.destination }

package peers

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"time"
)

// Receive has another node show who it is, and say who visits; it owns raw when it fails. The
// visitor's first bytes go to first, and may be no more; conn is nil where the node
// asked only whether this one is there.
func (p *Peers) Receive(life context.Context, raw *net.TCPConn, first []byte) (conn *Conn, n int, err error) {
	if err := raw.SetDeadline(time.Now().Add(peerHandshake)); err != nil {
		return nil, 0, err
	}
	secure := tls.Server(raw, p.keys.known())
	ctx, cancel := context.WithTimeout(life, peerHandshake)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, 0, err
	}
	if got := secure.ConnectionState().NegotiatedProtocol; got != peerALPN {
		return nil, 0, fmt.Errorf("it speaks %q", got)
	}
	if err := secure.SetDeadline(time.Now().Add(peerAnswer)); err != nil {
		return nil, 0, err
	}
	from, err := peerName(secure.ConnectionState())
	if err != nil {
		return nil, 0, err
	}
	conn = &Conn{stream: secure, raw: raw, from: from}
	n, err = conn.readRequest(first)
	if err == io.EOF {
		return nil, 0, raw.Close()
	}
	if err != nil {
		return nil, 0, err
	}
	return conn, n, nil
}

// readRequest reads who visits, and with which first bytes.
func (c *Conn) readRequest(first []byte) (n int, err error) {
	var head [peerHead]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return 0, err
	}
	source, destination, n := parsePeerHead(head)
	if n == 0 || n > len(first) {
		return 0, fmt.Errorf("it sends %d first bytes", n)
	}
	c.remote, c.local = net.TCPAddrFromAddrPort(source), net.TCPAddrFromAddrPort(destination)
	return io.ReadFull(c, first[:n])
}

// Decline answers that no tunnel for the visitor is here, and closes the connection: who
// asked may have gone with the answer.
func (c *Conn) Decline() error {
	_, err := c.Write([]byte{peerUnknown})
	_ = c.Close()
	return err
}

// Take answers that the visitor's tunnel is here. What follows is bare, or else stays
// inside the nodes' TLS.
func (c *Conn) Take(bare bool) error {
	answer := byte(peerHere)
	if bare {
		answer = peerBare
	}
	if _, err := c.Write([]byte{answer}); err != nil {
		return err
	}
	if bare { // who asked has said nothing since
		c.stream = c.raw
	}
	return c.SetDeadline(time.Time{})
}

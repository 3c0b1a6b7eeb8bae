package relay

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"porchlight/control/controlapi/tunnelwire"
	"porchlight/control/relay/clienthello"
	"porchlight/internal/socket"
)

const (
	// headroom is kept free in front of a preface, so that the PROXY header and
	// the peeked bytes leave in one write.
	headroom = 128
	// firstBuffer is what a connection is given at first, in bytes; a hello longer
	// than that, which is rare, moves to a buffer of the full size.
	firstBuffer = 4 << 10
)

var errPreface = errors.New("relay: neither TLS nor a data connection")

// preface is the head of a connection: what was read to find out whose it is.
// Its buffer is pooled; release gives it back.
type preface struct {
	buf   []byte
	n     int // bytes read, behind the headroom
	kind  prefaceKind
	hello clienthello.Hello
	// ticket of a data connection.
	ticket tunnelwire.Ticket
}

type prefaceKind int

const (
	prefaceTLS prefaceKind = iota
	prefaceData
	prefacePlainHTTP
)

var (
	firstBuffers = sync.Pool{New: func() any { return new([firstBuffer]byte) }}
	fullBuffers  = sync.Pool{New: func() any { return new([headroom + clienthello.MaxSize]byte) }}
)

// bytes is what was read.
func (p *preface) bytes() []byte { return p.buf[headroom : headroom+p.n] }

func (p *preface) release() {
	switch len(p.buf) {
	case firstBuffer:
		firstBuffers.Put((*[firstBuffer]byte)(p.buf))
	case headroom + clienthello.MaxSize:
		fullBuffers.Put((*[headroom + clienthello.MaxSize]byte)(p.buf))
	}
	p.buf, p.n = nil, 0
}

// widen moves what was read to a buffer of the full size.
func (p *preface) widen() {
	n, full := p.n, fullBuffers.Get().(*[headroom + clienthello.MaxSize]byte)
	copy(full[headroom:], p.bytes())
	p.release()
	p.buf, p.n = full[:], n
}

// readPreface reads until it is clear what the connection is. The deadline is
// taken off again when it returns without an error. The caller releases the
// preface in every case.
func readPreface(conn net.Conn, wait time.Duration) (*preface, error) {
	p := &preface{buf: firstBuffers.Get().(*[firstBuffer]byte)[:]}
	if err := conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return p, err
	}
	var tls clienthello.Reader
	for {
		switch p.n {
		case clienthello.MaxSize:
			return p, clienthello.ErrTooLong
		case firstBuffer - headroom:
			if len(p.buf) == firstBuffer {
				p.widen()
				tls = clienthello.Reader{} // what it holds is part of the buffer before
			}
		}
		n, err := conn.Read(p.buf[headroom+p.n:])
		p.n += n
		if n > 0 {
			done, err := p.parse(&tls)
			if err != nil {
				return p, err
			}
			if done {
				return p, conn.SetReadDeadline(time.Time{})
			}
		}
		if err != nil {
			if err == io.EOF && p.n > 0 {
				err = io.ErrUnexpectedEOF
			}
			return p, err
		}
	}
}

// parse says whether the bytes so far decide.
func (p *preface) parse(tls *clienthello.Reader) (done bool, err error) {
	b := p.bytes()
	switch {
	case b[0] == clienthello.Handshake:
		p.kind = prefaceTLS
		p.hello, done, err = tls.Read(b)
		return done, err
	case b[0] == tunnelwire.Magic[0]:
		p.kind = prefaceData
		var lacking int
		p.ticket, lacking, err = tunnelwire.ParsePreamble(b)
		return err == nil && lacking == 0, err
	case 'A' <= b[0] && b[0] <= 'Z':
		p.kind = prefacePlainHTTP
		return looksLikeHTTP(b)
	}
	return false, errPreface
}

// looksLikeHTTP says whether b begins with a method of capital letters and a
// space, as far as there is one to see.
func looksLikeHTTP(b []byte) (bool, error) {
	for i, c := range b {
		if c == ' ' && i >= 3 {
			return true, nil
		}
		if c < 'A' || c > 'Z' || i >= 16 {
			return false, errPreface
		}
	}
	return false, nil
}

// pieceSize is what is read at once of the first bytes, so that TLS makes room for no more.
const pieceSize = 448

// inPieces is b with the records of a hello, which are whole, divided into records of
// pieceSize: TLS keeps the room for its largest record for as long as the connection stands.
func inPieces(b []byte) []byte {
	const head = 5 // kind, version, length
	var out []byte
	for len(b) > head && b[0] == clienthello.Handshake {
		end := head + int(binary.BigEndian.Uint16(b[head-2:]))
		if end == head || end > len(b) {
			break
		}
		for piece := range slices.Chunk(b[head:end], pieceSize-head) {
			out = binary.BigEndian.AppendUint16(append(out, b[:head-2]...), uint16(len(piece)))
			out = append(out, piece...)
		}
		b = b[end:]
	}
	return append(out, b...)
}

// prefixedConn is a connection whose first bytes have been read already.
type prefixedConn struct {
	net.Conn
	rest    []byte
	onClose func() // may be nil
	once    sync.Once
	head    *head          // of HTTP; nil before, and for others
	resting socket.Resting // what reads and writes for Conn, of an agent; nil for others
}

func (c *prefixedConn) Read(b []byte) (int, error) {
	if len(c.rest) > 0 {
		n := copy(b, c.rest[:min(len(c.rest), pieceSize)])
		if c.rest = c.rest[n:]; len(c.rest) == 0 {
			c.rest = nil
		}
		return n, nil
	}
	if c.resting != nil {
		return c.resting.Read(b)
	}
	n, err := c.Conn.Read(b)
	if c.head != nil {
		c.head.came(n)
	}
	return n, err
}

func (c *prefixedConn) Write(b []byte) (int, error) {
	if c.resting != nil {
		return c.resting.Write(b)
	}
	return c.Conn.Write(b)
}

func (c *prefixedConn) SetWriteDeadline(until time.Time) error {
	if c.resting != nil {
		return c.resting.SetWriteDeadline(until)
	}
	return c.Conn.SetWriteDeadline(until)
}

func (c *prefixedConn) SetDeadline(until time.Time) error {
	return errors.Join(c.SetReadDeadline(until), c.SetWriteDeadline(until))
}

func (c *prefixedConn) Close() error {
	c.uncount()
	if c.head != nil {
		c.head.closedNow()
	}
	return c.Conn.Close()
}

// uncount calls onClose now, once.
func (c *prefixedConn) uncount() {
	if c.onClose != nil {
		c.once.Do(c.onClose)
	}
}

// CloseWrite passes a half-close on; the TLS above uses it.
func (c *prefixedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

package gate

import (
	"bytes"
	"errors"
	"strconv"
	"sync/atomic"

	"porchlight/agent/proxy/ascii"
)

// net/http reads HTTP/1.1 as RFC 9112 allows: a length beside chunks is dropped,
// a bare LF ends a line, a folded header is one value. Nothing can be smuggled
// through it, because the app gets a request that is written anew. But no honest
// program sends any of these. So the bytes are looked at on their way in, and what
// another parser could read in another way is refused with 400.
//
// strictConn only ever refuses: it never changes what an accepted request says,
// and where it and net/http should disagree about where a message ends, net/http
// is right and the connection at worst ends early. A head that is too large is
// refused too, by a page: see shorten.

// strictConn is a visitor's HTTP/1.1 connection.
type strictConn struct {
	wideConn
	begun    []byte   // what http1 read and did not answer: it comes first
	messages messages // touched by Read only, which net/http never calls twice at once
	instead  []byte   // what the server still has to read in place of a refused head
	refused  bool
	upgraded atomic.Bool // a WebSocket: what follows are no messages
}

// badHead ends a head, wherever it was cut, so that the server answers 400 and
// closes: it puts a byte into the line that was begun that no line may have, and a
// line without a colon after it. It must not begin with the end of a line, which
// could be the end of the head.
const badHead = "\x00\r\n\x00\r\n\r\n"

var errBody = errors.New("the framing of the request's body is not valid")

func (c *strictConn) Read(p []byte) (int, error) {
	if c.upgraded.Load() {
		return c.read(p)
	}
	if len(c.instead) > 0 {
		n := copy(p, c.instead)
		c.instead = c.instead[n:]
		return n, nil
	}
	if c.refused {
		return 0, errBody
	}
	n, err := c.read(p)
	good := c.messages.scan(p[:n])
	if good == n {
		return n, err
	}
	c.refused = true
	switch {
	case c.messages.state == inHeadLines && c.messages.head.tooLarge:
		if c.instead, err = c.shorten(p[good:n]); err != nil {
			return good, err
		}
	case c.messages.inHead():
		c.instead = []byte(badHead)
	default:
		return good, errBody
	}
	if good > 0 {
		return good, nil
	}
	return c.Read(p)
}

// read is Read before it is judged.
func (c *strictConn) read(p []byte) (int, error) {
	if len(c.begun) > 0 {
		n := copy(p, c.begun)
		c.begun = c.begun[n:]
		return n, nil
	}
	return c.wideConn.Read(p)
}

// messages follows the requests on a connection, byte by byte, with memory for
// no more than a line's beginning.
type messages struct {
	state  messageState
	line   [64]byte // the beginning of the line being read
	length int      // of line, up to its capacity
	more   bool     // the line is longer than that
	cr     bool     // the last byte was a CR

	first   bool // the line is the request line
	old     bool // it says HTTP/1.0
	hasSize bool // a Content-Length
	chunked bool // a Transfer-Encoding
	left    int64
	tail    [8]byte
	head    headSize
}

type messageState uint8

const (
	betweenMessages messageState = iota
	inHeadLines
	inBody
	inChunkSize
	inChunk
	afterChunk
	inTrailer
)

// maxChunkDigits are those of the largest chunk that is taken: they fit an int64.
const maxChunkDigits = 15

func (m *messages) inHead() bool { return m.state == betweenMessages || m.state == inHeadLines }

// scan looks at bytes and returns how many of them are good.
func (m *messages) scan(p []byte) (good int) {
	for i := 0; i < len(p); {
		switch m.state {
		case inBody, inChunk:
			n := min(m.left, int64(len(p)-i))
			i += int(n)
			if m.left -= n; m.left == 0 {
				m.next(m.state)
			}
		default:
			n, ok := m.text(p[i:])
			if !ok {
				return i + n
			}
			i += n
		}
	}
	return len(p)
}

// text takes bytes of a line up to its end; n is how many were good.
func (m *messages) text(p []byte) (n int, ok bool) {
	if m.state == betweenMessages {
		if p[0] != '\r' && p[0] != '\n' && !m.cr {
			*m = messages{state: inHeadLines, first: true}
		} // else an empty line before a request, which net/http judges
	}
	for n < len(p) {
		if !m.cr {
			// Everything up to the next CR or LF is of the line.
			end := bytes.IndexAny(p[n:], "\r\n")
			if end < 0 {
				end = len(p) - n
			}
			tooLarge := m.head.tooLarge
			if m.state == inHeadLines {
				end = m.head.count(end, m.length == 0 && !m.first)
			}
			m.keep(p[n : n+end])
			n += end
			if m.head.tooLarge != tooLarge {
				return n, false
			}
			if n == len(p) {
				return n, true
			}
			if p[n] == '\n' {
				return n, false // a bare LF
			}
			m.cr = true
			n++
			continue
		}
		if p[n] != '\n' {
			return n, false // a bare CR
		}
		m.cr = false
		ok := m.endLine()
		m.length, m.more = 0, false
		if !ok {
			return n, false
		}
		return n + 1, true
	}
	return n, true
}

func (m *messages) keep(p []byte) {
	n := copy(m.line[m.length:], p)
	m.length += n
	m.more = m.more || n < len(p)
	if m.first { // the version is at the end of the line, however long
		if len(p) >= len(m.tail) {
			copy(m.tail[:], p[len(p)-len(m.tail):])
		} else if len(p) > 0 {
			copy(m.tail[:], m.tail[len(p):])
			copy(m.tail[len(m.tail)-len(p):], p)
		}
	}
}

// endLine judges a whole line and says whether it is good.
func (m *messages) endLine() bool {
	line := m.line[:m.length]
	switch m.state {
	case inHeadLines:
		defer m.head.endLine()
		switch {
		case m.first:
			m.first, m.old = false, string(m.tail[:]) != "HTTP/1.1"
			return true
		case len(line) == 0:
			return m.endHead()
		default:
			return m.header(line)
		}
	case inChunkSize:
		return m.chunkSize(line)
	case afterChunk:
		m.state = inChunkSize
		return len(line) == 0
	case inTrailer:
		if len(line) == 0 {
			m.state = betweenMessages
			return true
		}
		return line[0] != ' ' && line[0] != '\t'
	default: // an empty line between messages
		return len(line) == 0
	}
}

func (m *messages) header(line []byte) bool {
	if line[0] == ' ' || line[0] == '\t' {
		return false // folded
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.Trim(value, " \t")
	m.head.field(name, line, m.more)
	switch {
	case len(bytes.Trim(name, " \t")) != len(name):
		return false // some read over a space before the colon
	case bytes.EqualFold(name, []byte("content-length")):
		length, ok := ascii.Length(value)
		if m.hasSize || m.more || !ok {
			return false
		}
		m.hasSize, m.left = true, length
	case bytes.EqualFold(name, []byte("transfer-encoding")):
		if m.chunked || m.more || !bytes.EqualFold(value, []byte("chunked")) {
			return false
		}
		m.chunked = true
	}
	return true
}

func (m *messages) endHead() bool {
	switch {
	case m.chunked && (m.hasSize || m.old):
		return false
	case m.chunked:
		m.state = inChunkSize
	case m.left > 0:
		m.state = inBody
	default:
		m.state = betweenMessages
	}
	return true
}

func (m *messages) chunkSize(line []byte) bool {
	digits, _, _ := bytes.Cut(line, []byte(";"))
	size, err := strconv.ParseUint(string(digits), 16, 63)
	if err != nil || len(digits) > maxChunkDigits {
		return false
	}
	m.left, m.state = int64(size), inChunk
	if size == 0 {
		m.state = inTrailer
	}
	return true
}

// next is what follows a body or a chunk that is complete.
func (m *messages) next(done messageState) {
	if done == inChunk {
		m.state = afterChunk
		return
	}
	m.state = betweenMessages
}

package gate

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"porchlight/agent/proxy/limits"
)

// gatherConn is a visitor's connection below TLS. crypto/tls writes each record
// by itself; between hold and release they are gathered and then written together,
// so that a download costs one system call where it cost four. A visitor who takes nothing
// of what is written has limits.Unread, unless whoever writes has set another deadline.
type gatherConn struct {
	net.Conn
	conn *Conn // to be told of the end; nil in tests

	// most is how many bytes may be read, and read how many were; 0 for no limit. Both are
	// of the goroutine that does the handshake, and not looked at after it.
	most, read int

	mu      sync.Mutex
	holding bool    // guarded by mu
	buf     *[]byte // what is gathered, from buffers; nil while there is nothing; guarded by mu
	err     error   // of a write that failed: nothing may follow it; guarded by mu

	deadline sync.Mutex // never held while anything is written
	theirs   bool       // the deadline of writes is one that was set; guarded by deadline
	until    time.Time  // else it is this one; guarded by deadline
}

// buffers are of limits.Gather, *[]byte.
var buffers = sync.Pool{New: func() any { return new(make([]byte, 0, limits.Gather)) }}

func (c *gatherConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.most == 0 {
		return n, err
	}
	if c.read += n; c.read > c.most {
		return 0, errLongHandshake
	}
	return n, err
}

var errLongHandshake = errors.New("the handshake is too long")

func (c *gatherConn) Write(p []byte) (int, error) {
	if c.conn != nil && c.conn.cut.Load() != nil {
		return 0, net.ErrClosed // TLS would say goodbye
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	if !c.holding {
		return c.write(p)
	}
	if c.buf != nil && len(*c.buf)+len(p) > limits.Gather {
		if err := c.send(); err != nil {
			return 0, err
		}
	}
	if len(p) > limits.Gather {
		return c.write(p)
	}
	if c.buf == nil {
		c.buf = buffers.Get().(*[]byte)
	}
	*c.buf = append(*c.buf, p...)
	return len(p), nil
}

// hold gathers what is written until release, which must follow.
func (c *gatherConn) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holding = true
}

// release writes what was gathered. After an error the connection takes no more:
// part of a record may be out.
func (c *gatherConn) release() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holding = false
	return c.send()
}

// send writes what was gathered. mu is held.
func (c *gatherConn) send() error {
	if c.buf == nil {
		return c.err
	}
	if c.err == nil {
		_, _ = c.write(*c.buf) // which sets err
	}
	*c.buf = (*c.buf)[:0]
	buffers.Put(c.buf)
	c.buf = nil
	return c.err
}

// write writes to the visitor, for as long as they take some of it. mu is held.
func (c *gatherConn) write(p []byte) (n int, err error) {
	for {
		ours := c.allow()
		var took int
		took, err = c.Conn.Write(p[n:])
		n += took
		if !ours || took == 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	c.err = err
	return n, err
}

// allow has the deadline of writes be limits.Unread from now on, or up to a quarter less,
// unless another one was set.
func (c *gatherConn) allow() (ours bool) {
	c.deadline.Lock()
	defer c.deadline.Unlock()
	if c.theirs {
		return false
	}
	if now := time.Now(); c.until.Sub(now) < limits.Unread*3/4 {
		c.until = now.Add(limits.Unread)
		_ = c.Conn.SetWriteDeadline(c.until) // fails on what is closed, as the write does
	}
	return true
}

// SetWriteDeadline sets another deadline than limits.Unread; zero for that one.
func (c *gatherConn) SetWriteDeadline(t time.Time) error {
	c.deadline.Lock()
	defer c.deadline.Unlock()
	c.theirs, c.until = !t.IsZero(), time.Time{}
	return c.Conn.SetWriteDeadline(t)
}

func (c *gatherConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// WriteBoth has the records of two writes leave together.
func (c *wideConn) WriteBoth(a, b []byte) error {
	c.gather.hold()
	_, err := c.Conn.Write(a)
	if err == nil {
		_, err = c.Conn.Write(b)
	}
	return cmp.Or(err, c.gather.release())
}

// Take and Give are the Conn's, for http2.
func (c *wideConn) Take(n int) bool { return c.gather.conn.Take(n) }
func (c *wideConn) Give(n int)      { c.gather.conn.Give(n) }

// Abort ends the connection at once.
func (c *wideConn) Abort() {
	abort(c.gather.Conn)
	c.gather.conn.close()
}

func (c *gatherConn) Close() error {
	if c.conn != nil {
		c.conn.close()
	}
	return c.Conn.Close()
}

// wideConn is a connection whose long writes leave together.
type wideConn struct {
	*tls.Conn
	gather *gatherConn // below it
}

// Read gives nothing once the connection was cut, be it here already.
func (c *wideConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.gather.conn.wasCut() {
		return 0, net.ErrClosed
	}
	return n, err
}

// Write has the records of a long write leave together.
func (c *wideConn) Write(p []byte) (int, error) {
	if len(p) <= limits.Record {
		return c.Conn.Write(p)
	}
	c.gather.hold()
	n, err := c.Conn.Write(p)
	if late := c.gather.release(); err == nil && late != nil {
		return 0, late // how much of it went out nobody knows
	}
	return n, err
}

package proxy

import (
	"net"
	"sync"
)

const (
	recordSize = 16 << 10 // bytes of plain text in a TLS record, at most
	gatherSize = 68 << 10 // bytes gathered: four full records, encrypted
)

// gatherConn is a visitor's connection below TLS. crypto/tls writes each record
// by itself; between hold and release they wait and leave together, so that a
// download costs one system call where it cost four.
type gatherConn struct {
	net.Conn
	caller *caller // to be told of the end; nil in tests

	mu      sync.Mutex
	holding bool    // guarded by mu
	held    *[]byte // of gathered; nil while there is nothing; guarded by mu
	err     error   // of a write that failed: nothing may follow it; guarded by mu
}

// gathered are buffers of gatherSize, *[]byte.
var gathered = sync.Pool{New: func() any { return new(make([]byte, 0, gatherSize)) }}

func (c *gatherConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	if !c.holding {
		return c.Conn.Write(p)
	}
	if c.held != nil && len(*c.held)+len(p) > gatherSize {
		if err := c.send(); err != nil {
			return 0, err
		}
	}
	if len(p) > gatherSize {
		return c.Conn.Write(p)
	}
	if c.held == nil {
		c.held = gathered.Get().(*[]byte)
	}
	*c.held = append(*c.held, p...)
	return len(p), nil
}

// hold has writes wait until release, which must follow.
func (c *gatherConn) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holding = true
}

// release sends what waits. After an error the connection takes no more: part of
// a record may be out.
func (c *gatherConn) release() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holding = false
	return c.send()
}

// send is called with mu held.
func (c *gatherConn) send() error {
	if c.held == nil {
		return c.err
	}
	if c.err == nil {
		_, c.err = c.Conn.Write(*c.held)
	}
	*c.held = (*c.held)[:0]
	gathered.Put(c.held)
	c.held = nil
	return c.err
}

// Abort ends the connection at once; see visit.end. Its Close follows.
func (c *gatherConn) Abort() error {
	if conn, ok := c.Conn.(interface{ Abort() error }); ok {
		return conn.Abort()
	}
	return c.Conn.Close()
}

func (c *gatherConn) Close() error {
	if c.caller != nil {
		c.caller.leave()
	}
	return c.Conn.Close()
}

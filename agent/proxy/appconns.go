package proxy

import (
	"bufio"
	"errors"
	"net"
	"sync"
	"time"
)

// Limits of connections to apps, whoever holds them.
const (
	maxIdleConns   = 1024 // or a sixteenth of the process's files
	maxIdlePerApp  = 256
	appDialTimeout = 5 * time.Second
	appKeepAlive   = 30 * time.Second // TCP's
	// maxIdleTime is less than the 5 s of common servers, whose closing would
	// race with a request.
	maxIdleTime       = 4 * time.Second
	maxResponseHeader = 256 << 10 // bytes, of the answer and the 1xx before it
	readBuffer        = 16 << 10
)

var errLongHead = errors.New("the head of the app's answer is too long")

// appConns keeps HTTP/1.1 connections to apps for the requests of forwardDirect.
// A connection belongs to one goroutine at a time and has none of its own, which
// is what it saves beside http.Transport; that an idle one has been closed, or
// has been sent something nobody asked for, is seen when it is taken.
type appConns struct {
	most int // idle ones

	mu    sync.Mutex
	idle  map[pool][]*appConn // the longest unused first; guarded by mu
	count int                 // of all of idle; guarded by mu
	sweep *time.Timer         // runs while count > 0; guarded by mu
}

// appConn is one connection and its reader.
type appConn struct {
	net.Conn
	r     *bufio.Reader // of the appConn itself, so that left counts
	left  int           // bytes a head may still have; negative: this is no head
	since time.Time     // when it was put back
}

func newAppConns(most int) *appConns {
	return &appConns{most: most, idle: map[pool][]*appConn{}}
}

func (c *appConn) Read(p []byte) (int, error) {
	if c.left < 0 {
		return c.Conn.Read(p)
	}
	if c.left == 0 {
		return 0, errLongHead
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// kept returns the idle connection of a pool that was used last, or nil.
func (a *appConns) kept(of pool) *appConn {
	for {
		a.mu.Lock()
		list := a.idle[of]
		if len(list) == 0 {
			a.mu.Unlock()
			return nil
		}
		c := list[len(list)-1]
		a.setIdle(of, list[:len(list)-1])
		a.mu.Unlock()
		if time.Since(c.since) < maxIdleTime && quiet(c.Conn) {
			return c
		}
		c.Close()
	}
}

func newAppConn(conn net.Conn) *appConn {
	c := &appConn{Conn: conn}
	c.r = bufio.NewReaderSize(c, readBuffer)
	return c
}

// put takes a connection back whose last answer has been read to its end.
func (a *appConns) put(of pool, c *appConn) {
	c.since = time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count >= a.most || len(a.idle[of]) >= maxIdlePerApp {
		c.Close()
		return
	}
	a.setIdle(of, append(a.idle[of], c))
	if a.sweep == nil {
		a.sweep = time.AfterFunc(maxIdleTime, a.closeOld)
	}
}

// setIdle replaces a pool's list. mu is held.
func (a *appConns) setIdle(of pool, list []*appConn) {
	a.count += len(list) - len(a.idle[of])
	if len(list) == 0 {
		delete(a.idle, of)
		return
	}
	a.idle[of] = list
}

// closeOld closes what has been idle for too long and comes again while
// anything is idle.
func (a *appConns) closeOld() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for of, list := range a.idle {
		old := 0
		for old < len(list) && now.Sub(list[old].since) >= maxIdleTime {
			list[old].Close()
			list[old] = nil
			old++
		}
		if old > 0 {
			a.setIdle(of, append([]*appConn(nil), list[old:]...))
		}
	}
	if a.count == 0 {
		a.sweep = nil
		return
	}
	a.sweep = time.AfterFunc(maxIdleTime, a.closeOld)
}

// CloseIdleConnections closes what nobody uses at this moment.
func (a *appConns) CloseIdleConnections() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for of, list := range a.idle {
		for _, c := range list {
			c.Close()
		}
		a.setIdle(of, nil)
	}
	if a.sweep != nil {
		a.sweep.Stop()
		a.sweep = nil
	}
}

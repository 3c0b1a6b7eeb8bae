package proxy

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/upstream"
)

// Limits of connections to apps.
const (
	maxIdleConns  = 1024 // or a sixteenth of the process's files
	maxIdlePerApp = 256
	// maxIdleTime is less than the 5 s of common servers, whose closing would
	// race with a request.
	maxIdleTime       = 4 * time.Second
	maxResponseHeader = 256 << 10 // bytes, of the answer and the 1xx before it
	readBuffer        = 16 << 10
)

// A port belongs to nobody: when an app ends, a program of any user of this
// computer can listen there next. So the program that took a new connection is looked
// at before a byte goes out on it. Later requests may use the connection without
// another look, because it stays with the program that took it.

// pool says which requests may share connections: those to one app. Another app on
// the same port gets connections of its own, and so does the same app after the
// owner approved another user's program for it.
type pool struct {
	app, user string
	at        upstream.Target
}

func poolOf(app App) pool { return pool{app.ID, app.User, app.target()} }

// String is a host and port for net/http, which keeps connections by it.
func (p pool) String() string {
	host, plain := p.app+"."+p.user, upstream.Target{Port: p.at.Port, Scheme: p.at.Scheme}
	if p.at != plain {
		sum := sha256.Sum256(fmt.Appendf(nil, "%#v", p.at))
		host += "." + hex.EncodeToString(sum[:])
	}
	return host + ":" + strconv.Itoa(p.at.Port)
}

// dialApp makes a new connection for the visit that is the context, to its app and
// to nobody else. Where nobody takes it, the app may have moved.
func (p *Proxy) dialApp(ctx context.Context, protocols ...string) (net.Conn, error) {
	v := ctx.Value(visitKey{}).(*visit)
	at := v.at.app.target()
	conn, err := at.Dial(ctx, p.checks(v, at), protocols...)
	if err == nil || p.config.Elsewhere == nil || !upstream.Refused(err) {
		return conn, err
	}
	var now App
	moved := false
	live := v.judge(func() (live bool) {
		moved = p.config.Elsewhere(ctx, v.at.app, at)
		now, live = p.lookup(v.at.app.Name)
		return live
	})
	if !live || !moved || now.ID != v.at.app.ID {
		return nil, err
	}
	at = now.target()
	return at.Dial(ctx, p.checks(v, at), protocols...)
}

// checks say whether a connection for a visit may carry anything.
func (p *Proxy) checks(v *visit, at upstream.Target) (c upstream.Checks) {
	if p.config.Listener != nil {
		c.Peer = func(peer agentapi.Listener) bool {
			return v.judge(func() bool { return p.config.Listener(v.at.app, at, peer) })
		}
	}
	if p.config.ShowedKey != nil {
		c.Key = func(key string) bool { return v.judge(func() bool { return p.config.ShowedKey(v, v.at.app, key) }) }
	}
	return c
}

// appConns keeps HTTP/1.1 connections to apps for the requests of forwardDirect.
// http.Transport would run two goroutines for each; here the goroutine of the
// request reads and writes. Whether the app has closed an idle connection, or sent
// something on it that nobody asked for, is looked at when it is taken.
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
	r     *bufio.Reader // reads through the appConn itself, which counts left down
	left  int           // bytes a head may still have; negative: a body is being read
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
		return 0, upstream.ErrLongHead
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	if c.left == maxResponseHeader {
		if odd := upstream.Sniff(p[:n]); odd != nil {
			return 0, odd
		}
	}
	c.left -= n
	return n, err
}

// take returns the idle connection of a pool that was used last, or nil.
func (a *appConns) take(of pool) *appConn {
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

// closeIdle closes what nobody uses at this moment.
func (a *appConns) closeIdle() {
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

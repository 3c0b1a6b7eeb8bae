package proxy

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"porchlight/agent/engine"
	"porchlight/agent/proxy/limits"
	"porchlight/agent/upstream"
	"porchlight/internal/socket"
)

// Limits of connections to apps.
const (
	maxIdleConns  = 1024 // of each kind, or its part of the process's files; see mostKept
	maxIdlePerApp = 256
	// maxIdleTime is less than the 5 s of common servers, whose closing would
	// race with a request.
	maxIdleTime       = 4 * time.Second
	asNew             = time.Second // after an answer: how long it may carry what is sent once
	asNewSeen         = asNew / 10  // how long one has to be seen to stay open, at least
	maxResponseHeader = 256 << 10   // bytes, of the answer and the 1xx before it
	readBuffer        = 16 << 10
)

// mostKept is how many idle connections each kind keeps: those of forwardDirect, and of
// net/http those for HTTP/1.1 and for HTTP/2.
func mostKept(files int) int {
	return max(1, min(maxIdleConns, limits.Share(files, limits.KeptShare)/3))
}

// appConns keeps HTTP/1.1 connections to apps for the requests of forwardDirect.
// http.Transport would run two goroutines for each; here the goroutine of the
// request reads and writes. Whether the app has closed an idle connection, or sent
// something on it that nobody asked for, is looked at when it is taken.
type appConns struct {
	most int // idle ones

	mu    sync.Mutex
	kept  map[pool]*kept // guarded by mu, as what is in them is
	last  *kept          // the one that was asked for last; nil for none; guarded by mu
	count int            // idle ones of all; guarded by mu
	sweep *time.Timer    // runs while there is any kept; guarded by mu
}

// kept are the idle connections of one pool, and what its app is known to do with them.
type kept struct {
	pool pool
	idle []*appConn // the longest unused first
	gone bool       // it was swept away
	took uint64     // who took these: see upstream.Checks

	// An app may close a connection just as a request goes out on it, and whether it has
	// read that cannot be known. So what is sent once goes out on a kept one only if one was
	// seen open after twice as long (stays), and none was closed unasked (closes).
	stays  time.Duration
	closes bool
}

// appConn is one connection and its reader.
type appConn struct {
	net.Conn
	r    *bufio.Reader // reads through the appConn itself, which counts left down
	left int           // bytes a head may still have; negative: a body is being read
	kept *kept         // where it belongs
	took uint64        // who took it
	// of is the account whose body it has carried, empty for none: what an app did not read
	// of that, and takes for a request, is followed by the same visitor's alone.
	of     string
	since  time.Time // when it was put back
	quiet  quiet
	toSend []byte // a request that the next Read sends before it reads; nil for none

	// Of the answer that is being read:
	res     http.Response
	body    lengthBody
	fields  http.Header
	inPlace bool // its header is that of the visitor's answer
}

func newAppConns(most int) *appConns {
	return &appConns{most: most, kept: map[pool]*kept{}}
}

// appConnRoom are appConns of connections that are closed, to be used again with their
// buffers.
var appConnRoom = sync.Pool{New: func() any {
	c := new(appConn)
	c.r = bufio.NewReaderSize(c, readBuffer)
	return c
}}

func newAppConn(conn net.Conn, kept *kept) *appConn {
	c := appConnRoom.Get().(*appConn)
	c.Conn, c.kept = socket.Wrap(conn), kept
	return c
}

// free gives a closed connection's room back. Nobody may know it any more.
func (c *appConn) free() {
	c.forget()
	*c = appConn{r: c.r, fields: c.fields}
	c.r.Reset(c)
	appConnRoom.Put(c)
}

// mostFields is how many fields an answer may have for its header's room to be kept. A
// map never shrinks.
const mostFields = 64

// forget empties the header of the connection's own.
func (c *appConn) forget() {
	if len(c.fields) > mostFields {
		c.fields = nil
		return
	}
	clear(c.fields)
}

func (c *appConn) Read(p []byte) (n int, err error) {
	if c.left < 0 {
		return c.Conn.Read(p)
	}
	if c.left == 0 {
		return 0, upstream.ErrLongHead
	}
	p = p[:min(len(p), c.left)]
	if c.toSend != nil {
		n, err = c.trade(p)
	} else {
		n, err = c.Conn.Read(p)
	}
	first := !c.answered()
	c.left -= n
	if first {
		if odd := upstream.Sniff(p[:n]); odd != nil {
			return 0, odd
		}
	}
	return n, err
}

// answered says that at least a byte of an answer has come, whatever it is.
func (c *appConn) answered() bool { return c.left != maxResponseHeader }

// errNotQuiet is of a kept connection on which nothing was sent: the app has closed it,
// or said something on it unasked.
var errNotQuiet = errors.New("the app has ended a kept connection")

// trade sends the request and reads the beginning of the answer.
func (c *appConn) trade(p []byte) (int, error) {
	request := c.toSend
	c.toSend = nil
	asked, n, err := c.quiet.exchange(request, p)
	if err != nil || n > 0 {
		return n, err
	}
	if _, err := c.Conn.Write(request[asked:]); err != nil { // it was too long to go out at once
		return 0, err
	}
	return c.Conn.Read(p)
}

// of is where the connections of a pool are kept.
func (a *appConns) of(key pool) *kept {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last != nil && a.last.pool == key {
		return a.last
	}
	k := a.kept[key]
	if k == nil {
		k = &kept{pool: key}
		a.kept[key] = k
		a.sweepLater()
	}
	a.last = k
	return k
}

// sweepLater has closeOld come. mu is held.
func (a *appConns) sweepLater() {
	if a.sweep == nil {
		a.sweep = time.AfterFunc(maxIdleTime, a.closeOld)
	}
}

// took notes who took a new connection: of another one than before nothing is known yet.
func (a *appConns) took(c *appConn, by uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c.took = by
	if k := c.kept; k.took != by {
		a.drop(k, len(k.idle))
		k.took, k.stays, k.closes = by, 0, false
	}
}

// drop closes the first n idle connections of a pool. mu is held.
func (a *appConns) drop(k *kept, n int) {
	for _, c := range k.idle[:n] {
		c.Close()
	}
	k.idle = slices.Delete(k.idle, 0, n)
	a.count -= n
}

// hasClosed notes that the app closed a kept connection, or spoke on it, unasked.
func (a *appConns) hasClosed(c *appConn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c.kept.closes = c.kept.closes || c.took == c.kept.took
}

// idle returns the idle connection that was used last, or nil; for what may not be sent
// again only one that is as good as new. One that may trade is looked at when it is asked.
func (a *appConns) idle(of *kept, account string, again bool) *appConn {
	for {
		c := a.popIdle(of, account, again)
		if c == nil {
			return nil
		}
		if time.Since(c.since) < maxIdleTime {
			if c.quiet.mayTrade(c.Conn) || c.isQuiet() {
				return c
			}
			a.hasClosed(c)
		}
		c.Close()
	}
}

func (a *appConns) popIdle(of *kept, account string, again bool) *appConn {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !again && !of.learn() {
		return nil
	}
	for i, c := range slices.Backward(of.idle) {
		switch {
		case c.of != "" && c.of != account:
			continue
		case again, time.Since(c.since) < min(asNew, of.stays/2):
			of.idle = slices.Delete(of.idle, i, i+1)
			a.count--
			return c
		}
		break
	}
	return nil
}

// learn sees what the app does with connections, by the one that was unused the longest, and
// says whether it keeps them. appConns.mu is held.
func (k *kept) learn() (keeps bool) {
	if k.stays < 2*asNew && !k.closes && len(k.idle) > 0 {
		c := k.idle[0]
		switch unused := time.Since(c.since); {
		case !c.isQuiet():
			k.closes = unused < maxIdleTime // later they all do
		case unused >= asNewSeen:
			k.stays = max(k.stays, unused)
		}
	}
	return k.stays > 0 && !k.closes
}

// isQuiet says whether nothing has come on an idle connection, and nothing has ended.
func (c *appConn) isQuiet() bool {
	return (c.quiet.mayTrade(c.Conn) || c.empty()) && c.quiet.is(c.Conn)
}

// empty says of a connection of TLS that is idle that it holds nothing it has taken
// from the socket already. A read of TLS takes all that has come, be it several records,
// and gives what is in the first: the socket looks quiet then, and the next request
// would get the second for its answer. With its deadline in the past a read gives what
// is here and waits for nothing, and that it was in time is no error that stays.
func (c *appConn) empty() bool {
	if c.Conn.SetReadDeadline(past) != nil {
		return false
	}
	var one [1]byte
	n, err := c.Conn.Read(one[:])
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && c.Conn.SetReadDeadline(time.Time{}) == nil
}

// put takes a connection back whose last answer has been read to its end. Of those that
// carried what may not be sent again more than one are kept only where they are of use.
func (a *appConns) put(c *appConn, again bool) {
	c.res, c.since = http.Response{}, time.Now()
	c.forget()
	a.mu.Lock()
	defer a.mu.Unlock()
	k := c.kept
	full := k.gone || c.took != k.took || a.count >= a.most || len(k.idle) >= maxIdlePerApp
	if full || !again && len(k.idle) > 0 && !k.learn() {
		c.Close()
		return
	}
	k.idle = append(k.idle, c)
	a.count++
	a.sweepLater()
}

// closeOld closes what has been idle for too long and comes again while
// anything is kept.
func (a *appConns) closeOld() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for of, k := range a.kept {
		k.learn()
		old := 0
		for old < len(k.idle) && now.Sub(k.idle[old].since) >= maxIdleTime {
			old++
		}
		a.drop(k, old)
		if unknown := k.stays == 0 && !k.closes; len(k.idle) == 0 && (unknown || len(a.kept) > maxIdleConns) {
			k.gone, a.last = true, nil
			delete(a.kept, of)
		}
	}
	if a.count == 0 {
		a.sweep = nil
		return
	}
	a.sweep.Reset(maxIdleTime)
}

// closeIdle closes what nobody uses at this moment.
func (a *appConns) closeIdle() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, k := range a.kept {
		a.drop(k, len(k.idle))
		k.gone = true
	}
	clear(a.kept)
	a.last = nil
	if a.sweep != nil {
		a.sweep.Stop()
		a.sweep = nil
	}
}

// pool says which requests may share connections: those to one app. Another app on
// the same port gets connections of its own, and so does the same app after the
// owner approved another user's program for it.
type pool struct {
	app, user string
	target    upstream.Target
}

func poolOf(app *engine.App) pool { return pool{app.ID, app.User, app.Target()} }

// String is a host and port for net/http, which keeps connections by it.
func (p pool) String() string {
	host, plain := p.app+"."+p.user, upstream.Target{Port: p.target.Port, Scheme: p.target.Scheme}
	if p.target != plain {
		sum := sha256.Sum256(fmt.Appendf(nil, "%#v", p.target))
		host += "." + hex.EncodeToString(sum[:])
	}
	return host + ":" + strconv.Itoa(p.target.Port)
}

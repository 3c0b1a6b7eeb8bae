package http1

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"porchlight/agent/proxy/lazy"
	"porchlight/agent/proxy/limits"
)

// What a connection is doing: one of these, or the tick at which the request under way
// had been read whole.
const (
	idle    = 0
	ended   = -1 // closed, or net/http's
	reading = -2 // a request whose body has not been read to its end
	watched = -3 // a request that takes long: see watch
)

const (
	bufferSize = 4 << 10
	// firstSize is the room that a connection at rest has to be woken with.
	firstSize = 64
	// maxPlain is the longest plain head, in bytes.
	maxPlain = 16 << 10
)

// buffers are for what is read, *[bufferSize]byte; large ones are for long heads and
// for what nobody wants to read.
var (
	buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}
	larges  = sync.Pool{New: func() any { return new([maxPlain]byte) }}
)

func getBuffer() *[maxPlain]byte  { return larges.Get().(*[maxPlain]byte) }
func putBuffer(b *[maxPlain]byte) { larges.Put(b) }

// conn is one connection. One goroutine serves it; what others touch says so.
type conn struct {
	server *Server
	rw     Conn
	remote string
	tls    *tls.ConnectionState

	state atomic.Int64 // see above
	ctx   lazy.Context

	first  [firstSize]byte
	small  *[bufferSize]byte // nil while nothing is here that was read
	large  *[maxPlain]byte   // nil unless a head did not fit into small
	buf    []byte            // one of them
	from   int               // of buf: what was read and not looked at
	to     int               // of buf: where that ends
	filled bool              // the last read filled buf, so that there may be more at hand
	spare  int               // empty lines that may stand before the next head

	renewed int64       // tick at which the deadline for the next head was set
	moved   atomic.Bool // the read deadline is another one now

	head  head
	url   url.URL
	blank *http.Request // with the context
	req   *http.Request
	res   response
	body  *body // of the request under way; nil for none

	mu       sync.Mutex
	aborted  bool          // the watch is to end; guarded by mu
	watching chan struct{} // closed when the watch has ended; nil for none; guarded by mu
	readGot  int           // bytes that it read, written before watching is closed
}

func newConn(s *Server, ctx context.Context, rw Conn) *conn {
	state := rw.ConnectionState()
	c := &conn{server: s, rw: rw, remote: rw.RemoteAddr().String(), tls: &state}
	c.ctx.Context = ctx
	c.moved.Store(true)
	c.head.header = http.Header{}
	c.blank = (&http.Request{
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		URL: &c.url, Header: c.head.header, Body: http.NoBody, RemoteAddr: c.remote, TLS: c.tls,
	}).WithContext(&c.ctx)
	c.req = new(http.Request)
	c.res.c, c.res.header = c, http.Header{}
	return c
}

// serve is Server.Serve.
func (c *conn) serve() (rest []byte, handed bool) {
	ok := c.readWithin(limits.HeaderTimeout)
	for ok {
		var n int
		if n, ok = c.readHead(); !ok {
			break
		}
		if n == 0 || !c.head.parse(c.buf[c.from:c.from+n]) {
			if !c.state.CompareAndSwap(idle, ended) {
				break
			}
			c.ctx.Cancel()
			rest = append(rest, c.buf[c.from:c.to]...)
			c.free()
			return rest, true
		}
		c.from += n
		ok = c.answer()
	}
	c.state.Store(ended)
	c.ctx.Cancel()
	_ = c.rw.Close()
	c.free()
	return nil, false
}

// free gives the buffers back, which are empty. A panic leaves them: somebody may still
// read into them.
func (c *conn) free() {
	if c.large != nil {
		putBuffer(c.large)
	}
	if c.small != nil {
		buffers.Put(c.small)
	}
	c.large, c.small, c.buf = nil, nil, c.first[:]
}

// wake has what woke the connection in a buffer with room for the rest.
func (c *conn) wake() {
	c.small = buffers.Get().(*[bufferSize]byte)
	copy(c.small[:], c.buf)
	c.buf = c.small[:]
}

// readWithin bounds how long reading may take; false when the server ends.
func (c *conn) readWithin(d time.Duration) bool {
	_ = c.rw.SetReadDeadline(time.Now().Add(d)) // fails on what is closed, as the read does
	return c.state.Load() != ended              // Shutdown sets a deadline after the state
}

// readHead waits for a head and returns how long it is, 0 for one that did not come
// whole or is too long: then it is not plain. ok is false when the connection is over.
func (c *conn) readHead() (n int, ok bool) {
	begun := false
	for {
		for ; c.spare > 0 && c.to-c.from >= 2 && c.buf[c.from] == '\r' && c.buf[c.from+1] == '\n'; c.spare-- {
			c.from += 2
		}
		if c.from == c.to {
			c.from, c.to, c.filled = 0, 0, false
			c.free()
		} else {
			n := headSize(c.buf[c.from:c.to])
			// Half of an empty line that may stand here is kept: net/http would refuse it.
			half := c.spare > 0 && string(c.buf[c.from:c.to]) == "\r"
			if n > 0 || !half && !c.filled || !c.makeRoom() {
				return n, true
			}
			if !begun && !c.readWithin(limits.HeaderTimeout) {
				return 0, false
			}
			begun = true
			c.moved.Store(true)
		}
		if !c.read() {
			return 0, false
		}
	}
}

// read reads once; where the connection was at rest and a head has only begun, once more:
// most often its rest is at hand. How reading on fails is net/http's to judge.
func (c *conn) read() bool {
	if !c.readOnce() {
		return false
	}
	if c.small == nil {
		c.wake()
		if c.filled && headSize(c.buf[:c.to]) == 0 {
			c.moved.Store(true)
			_ = c.readWithin(limits.HeaderTimeout) && c.readOnce()
		}
	}
	return true
}

func (c *conn) readOnce() bool {
	room := c.buf[c.to:]
	n, err := c.rw.Read(room)
	c.to += n
	c.filled = n == len(room)
	return n > 0 || err == nil
}

// makeRoom makes room for more of a head, of which a part is here; false if that is
// not how plain ones begin.
func (c *conn) makeRoom() bool {
	part := c.buf[c.from:c.to]
	for i, b := range part {
		if b == '\n' && (i == 0 || part[i-1] != '\r') || (b < 0x20 || b >= 0x7f) && b != '\r' && b != '\n' {
			return false
		}
	}
	switch {
	case c.from > 0:
		copy(c.buf, part)
	case c.large == nil:
		c.large = getBuffer()
		copy(c.large[:], part)
		c.buf = c.large[:]
	default:
		return false
	}
	c.from, c.to = 0, len(part)
	return true
}

// answer has the handler answer the request whose head was parsed, and says whether
// the connection can carry another one.
func (c *conn) answer() (keep bool) {
	begun := c.server.clock.now()
	if c.head.length > 0 {
		begun = reading
	}
	if !c.state.CompareAndSwap(idle, begun) {
		return false // shut down
	}
	c.server.clock.now()
	c.server.config.State(c.rw, http.StateActive)
	c.makeRequest()
	c.res.begin(c.head.method == http.MethodHead, c.head.close)
	done := c.handle()
	c.res.close = !c.ctx.Finish() || c.res.close
	if c.state.Load() == reading {
		c.boundRest(done)
	}
	keep = done && c.res.finish()
	if body := c.body; body != nil {
		c.body = nil
		whole, more := body.end(c.res.close)
		if more && done {
			c.linger()
		}
		keep = keep && whole
	}
	c.endWatch()
	c.res.end()
	c.server.config.State(c.rw, http.StateIdle)
	return keep && c.awaitNext()
}

// boundRest bounds how long the rest of a body is waited for once the handler has
// returned, by us or by whoever still reads it: not at all when it gave up.
func (c *conn) boundRest(done bool) {
	c.moved.Store(true)
	until := past
	if done {
		until = time.Now().Add(limits.BodyTimeout)
	}
	_ = c.rw.SetReadDeadline(until) // fails on what is closed, as the read does
}

// handle calls the handler; false when it gave up, and nothing more may be sent.
func (c *conn) handle() (done bool) {
	defer func() {
		if !done {
			c.server.panicked(recover(), c.remote)
		}
	}()
	c.server.config.Handler.ServeHTTP(&c.res, c.req)
	return true
}

// makeRequest makes the request of the head.
func (c *conn) makeRequest() {
	*c.req = *c.blank
	c.url = c.head.url
	c.req.Method, c.req.RequestURI, c.req.Host = c.head.method, c.head.target, c.head.host
	c.req.Close, c.req.ContentLength = c.head.close, c.head.length
	c.spare = 0
	if c.head.method == http.MethodPost {
		c.spare = 2 // as net/http has it, for programs that end a body with a line
	}
	if c.head.length > 0 {
		c.body = &body{c: c, left: c.head.length}
		c.req.Body = c.body
	}
}

// awaitNext sets how long the next request may be waited for, once a second at most;
// false when there is to be none.
func (c *conn) awaitNext() bool {
	if c.server.closing.Load() {
		return false
	}
	tick := c.server.clock.tick.Load()
	if !c.moved.Swap(false) && tick-c.renewed <= int64(time.Second/tickEvery) {
		return true
	}
	c.renewed = tick
	return c.readWithin(limits.Idle)
}

// readBody is called by the body under its lock, from any goroutine, while the request
// is under way.
func (c *conn) readBody(p []byte) (n int, err error) {
	if c.from < c.to {
		n = copy(p, c.buf[c.from:c.to])
		c.from += n
		return n, nil
	}
	n, err = c.rw.Read(p)
	switch {
	case n > 0:
		err = nil // it comes again
	case err != nil:
		c.ctx.Cancel() // whoever waits for the rest of the request waits in vain
	}
	return n, err
}

// bodyEnded has the request watched from now on.
func (c *conn) bodyEnded() {
	c.state.CompareAndSwap(reading, c.server.clock.now())
	c.server.clock.now()
}

// linger ends the connection after an answer to a visitor who may still be sending, in
// a way in which the answer gets there.
func (c *conn) linger() {
	_ = c.rw.CloseWrite() // fails on what is closed
	time.Sleep(limits.Lingering)
}

// watch reads on while a request is under way that has been for long, so that its
// context ends when the visitor goes. It is the clock's to call.
func (c *conn) watch(began int64) {
	defer c.caught()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.state.CompareAndSwap(began, watched) {
		return
	}
	c.moved.Store(true)
	_ = c.rw.SetReadDeadline(time.Time{}) // fails on what is closed, as the read does
	c.watching, c.aborted, c.readGot = make(chan struct{}), false, 0
	go c.follow(c.watching)
}

// follow reads once: the end, or the beginning of another request.
func (c *conn) follow(ended chan<- struct{}) {
	defer close(ended)
	defer c.caught()
	if c.from == c.to {
		c.from, c.to = 0, 0
	}
	room := c.buf[c.to:]
	if len(room) == 0 {
		return
	}
	n, err := c.rw.Read(room)
	c.readGot = n
	c.mu.Lock()
	defer c.mu.Unlock()
	if n == 0 && err != nil && !c.aborted {
		c.ctx.Cancel()
	}
}

// caught is deferred where another goroutine than the one that serves the connection does
// something for it: what it panics with costs this connection and no other.
func (c *conn) caught() {
	if what := recover(); what != nil {
		c.server.panicked(what, c.remote)
		c.rw.Abort() // first, or a handler that ends with the context still answers
		c.ctx.Cancel()
	}
}

// endWatch has the request no longer watched.
func (c *conn) endWatch() {
	switch was := c.state.Swap(idle); was {
	case idle, ended:
		panic("http1: a request ends that was not under way")
	case watched:
	default:
		return
	}
	c.mu.Lock()
	ended := c.watching
	c.aborted, c.watching = true, nil
	_ = c.rw.SetReadDeadline(past) // fails on what is closed, as the read does
	c.mu.Unlock()
	if ended == nil {
		return // watch met a fault of ours
	}
	<-ended
	c.to += c.readGot
	c.filled = false
}

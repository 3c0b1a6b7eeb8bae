package http2

import (
	"errors"
	"net/http"
	"net/url"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	frames "golang.org/x/net/http2"

	"porchlight/agent/proxy/lazy"
	"porchlight/agent/proxy/limits"
)

// stream is one request and its answer. None is used again: who keeps a ResponseWriter,
// a body or a context too long finds it closed, and never another's. Only the maps of the
// headers are, of requests without a body, which nothing reads on after the handler.
type stream struct {
	c       *Conn
	id      uint32
	request *http.Request // room.request
	handler http.Handler
	length  int64 // of the body, as the head says; -1: it does not
	body    *body // nil where the head was all
	trails  bool  // trailers are said to come; the handler has the request itself

	ctx  lazy.Context
	room struct { // one piece of memory for all of a stream
		request http.Request
		url     url.URL
	}
	response response // touched by the handler's goroutine only
	ours     bool     // see response.DropHead; touched by the handler's goroutine only
	admitted bool     // see response.Admit; touched by the handler's goroutine only
	maps     *headers // of request and response; nil once they are another's

	// Guarded by c.mu:
	window   int64 // what may be sent
	got      int64 // bytes of the body
	remote   bool  // the visitor has said all
	closed   bool
	err      error // why, when closed
	queued   bool  // in c.queue
	held     int   // bytes of c.held
	wake     chan struct{}
	deadline *time.Timer // of writes; nil for none
	lingers  *time.Timer // until the visitor is told to send no more; nil until the answer is whole
	trailer  http.Header // what came of those announced
}

var (
	errStalled  = errors.New("http2: the visitor does not read the answer")
	errDeclared = errors.New("http2: the body is not as long as the request says")
)

// serve answers the request, on a worker.
func (st *stream) serve() {
	defer st.done()
	defer st.recovered()
	st.handler.ServeHTTP(&st.response, st.request)
	st.response.finish()
	st.giveMaps()
}

// headers are the maps of a request and its answer.
type headers struct {
	in, out http.Header
	values  []string // of in
}

var maps = sync.Pool{New: func() any { return &headers{in: make(http.Header, 16), out: make(http.Header, 8)} }}

// maxKept is how many fields a map that is used again may have had; a larger one would
// stay as large.
const maxKept = 64

// giveMaps lets another stream have the maps, once the handler has returned.
func (st *stream) giveMaps() {
	m := st.maps
	if st.body != nil || len(m.in) > maxKept || len(m.out) > maxKept || cap(m.values) > 2*maxKept {
		return
	}
	st.maps, st.request.Header, st.response.header = nil, nil, nil
	clear(m.in)
	clear(m.out)
	clear(m.values)
	maps.Put(m)
}

// recovered ends the stream of a handler that panicked. One that meant to
// (http.ErrAbortHandler) has nothing wrong with it.
func (st *stream) recovered() {
	what := recover()
	if what == nil {
		return
	}
	c := st.c
	ours := what != http.ErrAbortHandler //nolint:errorlint // a panic is no chain of errors
	if ours {
		c.server.config.Log.Debug("HTTP/2: a panic", "what", what, "stack", string(debug.Stack()))
		c.server.broken(what)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !st.closed {
		c.reset(st.id, frames.ErrCodeInternal, st, errClosed)
	}
	if ours {
		c.fail(errBroken)
	}
}

// done lets the next stream be begun, and writes what is left to write.
func (st *stream) done() {
	st.response.free()
	if form := st.request.MultipartForm; form != nil {
		_ = form.RemoveAll() // files of nobody's any more
	}
	c := st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if !st.closed && st.lingers == nil { // a handler that ended its goroutine
		c.reset(st.id, frames.ErrCodeInternal, st, errClosed)
	}
	st.give(0)
	c.handled()
	c.flush(nil, true)
}

// open opens the window, by less than nothing where the visitor changed its mind. mu is
// held.
func (st *stream) open(by int64) {
	was := st.window
	if st.window += by; was <= 0 && st.window > 0 {
		st.signal()
	}
}

// signal wakes who waits to send. mu is held.
func (st *stream) signal() {
	if st.wake != nil {
		signal(st.wake)
	}
}

func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default: // it has one
	}
}

// await has the stream wait for a signal: that it may send, or that it is closed. mu is
// held, but not while waiting. A visitor who keeps it waiting too long loses it; while
// others of the connection are sent, those that wait for their turn go on waiting.
func (st *stream) await() {
	c := st.c
	if st.wake == nil {
		st.wake = make(chan struct{}, 1)
	}
	stuck := st.held
	c.stuck += stuck
	defer func() { c.stuck -= stuck }()
	if c.given != nil {
		signal(c.given)
	}
	most := limits.Stall
	if st.ours {
		most = limits.StallOurs
	}
	for sent := c.sent; !c.wait(st.wake, most) && !st.closed; sent = c.sent {
		if !st.queued || c.sent == sent {
			c.reset(st.id, frames.ErrCodeCancel, st, errStalled)
			c.kick()
			return
		}
	}
}

// wait is false when d passed before the signal. mu is held, but not while waiting.
func (c *Conn) wait(signal <-chan struct{}, d time.Duration) bool {
	c.mu.Unlock()
	defer c.mu.Lock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-signal:
		return true
	case <-timer.C:
		return false
	}
}

// endLocal is called when the answer is whole, in out. A visitor who still sends is told
// that nobody reads it, but not at once: what they send is dropped for a moment in which they
// can see the answer, for curl 7.88 forgets it once the stream is reset. mu is held.
func (st *stream) endLocal() {
	c := st.c
	if st.remote {
		c.close(st, errClosed)
		return
	}
	st.body.drop(errClosed)
	st.ctx.Cancel()
	st.lingers = time.AfterFunc(limits.Lingering, func() {
		defer c.caught()
		c.mu.Lock()
		defer c.mu.Unlock()
		if !st.closed {
			c.reset(st.id, frames.ErrCodeNo, st, errClosed)
			c.kick()
		}
	})
}

// endRemote is called when the visitor has said all. mu is held.
func (st *stream) endRemote() {
	st.remote = true
	if st.lingers != nil {
		st.c.close(st, errClosed)
		return
	}
	if st.length >= 0 && st.got != st.length {
		st.body.end(errDeclared)
		return
	}
	st.body.end(nil)
}

// processTrailer takes a second header block of a stream. mu is held.
func (st *stream) processTrailer(h *head, ended bool) error {
	if st.remote {
		return streamError(st.id, frames.ErrCodeStreamClosed)
	}
	if !ended || h.pseudo.has != 0 || h.cut {
		return streamError(st.id, frames.ErrCodeProtocol)
	}
	if st.trails {
		trailer := http.Header{}
		for _, f := range h.fields {
			if !httpguts.ValidTrailerHeader(f.name) {
				return streamError(st.id, frames.ErrCodeProtocol)
			}
			trailer[f.name] = append(trailer[f.name], f.value)
		}
		if !st.body.closed {
			st.trailer = trailer
		}
	}
	st.endRemote()
	return nil
}

package http1

import (
	"io"
	"net/http"
	"sync"

	"porchlight/agent/proxy/limits"
)

// body is a request's body, of a length that the head said. Every request has one of
// its own: whoever reads it after the handler has returned finds it closed, and never
// the next request.
type body struct {
	c *conn

	mu      sync.Mutex
	left    int64 // guarded by mu
	err     error // of the connection: nothing more can be read; guarded by mu
	closed  bool  // guarded by mu
	dropped bool  // too much of it is to come; guarded by mu
}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.read(p)
}

// AtHand says whether all that is left has come already.
func (b *body) AtHand() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left > 0 && b.err == nil && !b.closed && b.left <= int64(b.c.to-b.c.from)
}

// read reads on. mu is held.
func (b *body) read(p []byte) (int, error) {
	switch {
	case b.err != nil:
		return 0, b.err
	case b.left == 0:
		return 0, io.EOF
	case len(p) == 0:
		return 0, nil
	case int64(len(p)) > b.left:
		p = p[:b.left]
	}
	n, err := b.c.readBody(p)
	b.left -= int64(n)
	switch {
	case b.left == 0:
		b.c.bodyEnded()
		err = io.EOF
	case err == io.EOF:
		b.err = io.ErrUnexpectedEOF
		err = b.err
	case err != nil:
		b.err = err
	}
	return n, err
}

// Close reads what little may be left, so that the connection can carry another
// request.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.close()
	return nil
}

// close is Close. mu is held.
func (b *body) close() {
	if b.closed {
		return
	}
	if b.left > limits.BodyRest {
		b.dropped = true
	} else {
		b.discard()
	}
	b.closed = true
}

// discard reads up to what is left. mu is held.
func (b *body) discard() {
	buf := getBuffer()
	defer putBuffer(buf)
	for b.left > 0 && b.err == nil {
		if _, err := b.read(buf[:]); err != nil {
			break
		}
	}
}

// discardRest drops what has not been read of the body before the head of an answer goes
// out: some visitors send all of a request before they read. keep says whether the
// connection can be kept.
func (b *body) discardRest() (keep bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
	case b.left < limits.BodyRest:
		b.discard()
	default:
		b.dropped = true
	}
	return b.left == 0
}

// end closes the body after the handler; last says that no request follows it. whole
// says that all of it was read, more that the visitor may be sending for long.
func (b *body) end(last bool) (whole, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed && last && b.left > int64(b.c.to-b.c.from) {
		b.closed, b.dropped = true, true
	}
	b.close()
	return b.left == 0, b.dropped
}

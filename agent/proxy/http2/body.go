package http2

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// body is a request's. What has come and is not read yet is bounded by the windows.
type body struct {
	st   *stream
	wake chan struct{} // who reads waits for it

	// Guarded by the connection's mu:
	in       inflow
	pieces   []*piece // full, but for the last
	consumed int      // how much of the first was read
	length   int      // bytes of all that were not
	err      error    // what follows them; nil while more may come
	closed   bool     // by the handler
	expects  bool     // "100 Continue", before it is sent
	until    time.Time
}

type piece struct {
	n   int
	buf [16 << 10]byte
}

var pieces = sync.Pool{New: func() any { return new(piece) }}

var errBodyClosed = errors.New("http2: the body was closed")

// put keeps what has come. mu is held.
func (b *body) put(p []byte) {
	if b.closed || b.err != nil {
		b.st.c.credit(len(p)) // of the stream, nothing more is wanted
		return
	}
	b.length += len(p)
	for len(p) > 0 {
		last := len(b.pieces) - 1
		if last < 0 || b.pieces[last].n == len(b.pieces[last].buf) {
			fresh := pieces.Get().(*piece)
			fresh.n = 0
			b.pieces = append(b.pieces, fresh)
			last++
		}
		to := b.pieces[last]
		n := copy(to.buf[to.n:], p)
		to.n += n
		p = p[n:]
	}
	signal(b.wake)
}

// end says that no more comes: nil for all is here. mu is held.
func (b *body) end(why error) {
	if why == nil {
		why = io.EOF
	}
	if b.err == nil {
		b.err = why
	}
	signal(b.wake)
}

// drop forgets what was not read, of a stream that is closed. mu is held.
func (b *body) drop(why error) {
	if b.err == nil || b.length > 0 {
		b.err = why
	}
	b.empty()
	signal(b.wake)
}

// empty lets go of what was not read. mu is held.
func (b *body) empty() {
	b.st.c.credit(b.length)
	for _, p := range b.pieces {
		pieces.Put(p)
	}
	b.pieces, b.consumed, b.length = nil, 0, 0
}

// credit opens both windows by n bytes. mu is held.
func (b *body) credit(n int) {
	c, st := b.st.c, b.st
	c.credit(n)
	if st.remote || st.closed {
		return
	}
	if say := b.in.add(n); say > 0 {
		_ = c.write.WriteWindowUpdate(st.id, say) // into memory
		c.controls()
	}
}

// Read is for the handler and what it starts.
func (b *body) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c := b.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	b.ask()
	for {
		switch {
		case b.closed:
			return 0, errBodyClosed
		case b.length > 0:
			n := b.read(p)
			b.credit(n)
			return n, nil
		case b.err != nil:
			return 0, b.ending()
		case !b.until.IsZero() && !time.Now().Before(b.until):
			b.err = os.ErrDeadlineExceeded
		case len(c.out) > 0 && !c.flushing:
			c.flush(b.st, false) // it may be what the visitor waits for
		default:
			b.await()
		}
	}
}

// ask tells a visitor who waits to be asked that the body is wanted. mu is held.
func (b *body) ask() {
	if !b.expects || b.st.closed {
		return
	}
	b.expects = false
	if !b.st.response.sent {
		b.st.c.headersOut(b.st.id, 100, nil, false)
		b.st.c.flush(b.st, false)
	}
}

// AtHand says whether all that is left has come already, its end included.
func (b *body) AtHand() bool {
	c := b.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Is(b.err, io.EOF) && !b.closed
}

// read takes bytes that are here. mu is held.
func (b *body) read(p []byte) (n int) {
	for n < len(p) && b.length > 0 {
		first := b.pieces[0]
		k := copy(p[n:], first.buf[b.consumed:first.n])
		n += k
		b.consumed += k
		b.length -= k
		if b.consumed == first.n {
			pieces.Put(first)
			b.pieces[0] = nil
			b.pieces, b.consumed = b.pieces[1:], 0
		}
	}
	return n
}

// ending is what comes after the last byte. The trailers that were announced are there
// with the end of the body. mu is held.
func (b *body) ending() error {
	if errors.Is(b.err, io.EOF) {
		for name := range b.st.request.Trailer {
			if values, came := b.st.trailer[name]; came {
				b.st.request.Trailer[name] = values
			}
		}
		b.st.trailer = nil
	}
	return b.err
}

// await waits until more has come, or the deadline has. mu is held, but not while
// waiting.
func (b *body) await() {
	if b.until.IsZero() {
		c := b.st.c
		c.mu.Unlock()
		defer c.mu.Lock()
		<-b.wake
		return
	}
	b.st.c.wait(b.wake, time.Until(b.until))
}

// Close is for the handler and what it starts, at any time.
func (b *body) Close() error {
	c := b.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	b.close()
	return nil
}

// close is Close. mu is held.
func (b *body) close() {
	if !b.closed {
		b.closed = true
		b.st.trailer = nil
		b.empty()
		signal(b.wake)
	}
}

// setDeadline has reads fail from then on; never for zero.
func (b *body) setDeadline(until time.Time) {
	c := b.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	b.until = until
	if !until.IsZero() && until.Before(time.Now()) {
		b.end(os.ErrDeadlineExceeded)
	}
	signal(b.wake)
}

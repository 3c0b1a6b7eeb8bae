package http2

import (
	frames "golang.org/x/net/http2"

	"porchlight/agent/proxy/limits"
)

// memory is asked for the bytes that requests hold until they are admitted or answered. The
// net.Conn may have these methods.
type memory interface {
	Take(n int) bool // false: there is no room
	Give(n int)
}

// size is how much memory what was read takes, in bytes.
func (h *head) size() int {
	if h.cut {
		return h.short
	}
	return 2*limits.Header - int(h.left) - int(h.trailers)
}

// hold has the connection hold the head of a new stream, and what an answer to it takes. While
// it has its share, it is read no further, as long as some of it may come free without that:
// streams that wait for a window are in the visitor's hand.
func (c *Conn) hold(id uint32, head int) (held int, err error) {
	if c.memory == nil {
		return 0, nil
	}
	held = head + limits.HeldAnswer
	c.mu.Lock()
	defer c.mu.Unlock()
	for inTime := true; c.held+held > limits.HeldPerConn && c.ended == nil; c.given = nil {
		if !inTime || c.held <= c.stuck {
			return 0, streamError(id, frames.ErrCodeRefusedStream)
		}
		c.kick()
		c.given = make(chan struct{}, 1)
		inTime = c.wait(c.given, limits.HeaderTimeout)
	}
	c.held += held
	c.mu.Unlock()
	ok := c.memory.Take(held) // which may end other connections
	c.mu.Lock()
	if !ok {
		c.held -= held
		return 0, streamError(id, frames.ErrCodeRefusedStream)
	}
	return held, nil
}

// give gives back what was held. mu is held.
func (c *Conn) give(n int) {
	if n <= 0 {
		return
	}
	c.held -= n
	c.memory.Give(n)
	if c.given != nil {
		signal(c.given)
	}
}

// give gives back what a stream holds, but for some. mu is held.
func (st *stream) give(but int) {
	if n := st.held - but; n > 0 {
		st.held = but
		st.c.give(n)
	}
}

// Admit says that the request's memory counts as the handler's.
func (w *response) Admit() {
	w.st.admitted = true
	c := w.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	w.st.give(0)
}

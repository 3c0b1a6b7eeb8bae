package gate

import (
	"net/http"
	"time"

	"porchlight/agent/proxy/limits"
)

// What strangers send is kept until it is answered, and an answer waits for whoever does
// not take it. So those bytes have bounds as connections have them: in all, of one
// source, and of one connection. Where they are reached, the connection goes that has held some for the longest
// time and on which nobody was let in; connections on which somebody was have a part for
// themselves.

// Take has the connection hold n bytes for a request that is not at an app. It is false where
// there is no room, though others gave way, or where the connection itself did.
func (c *Conn) Take(n int) bool {
	for {
		c.conns.mu.Lock()
		out, ok := c.conns.hold(c, n)
		var empty <-chan struct{}
		if out != nil {
			empty = out.empty
		}
		c.conns.mu.Unlock()
		if out == nil {
			return ok
		}
		out.http2.Abort() // who reads it may wait, and not see the end
		abort(out.raw)
		if out == c {
			return false
		}
		select {
		case <-empty:
		case <-time.After(limits.Parting):
			return false
		}
	}
}

// Give gives back bytes that were taken.
func (c *Conn) Give(n int) {
	s := c.conns
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held -= n
	c.source.held -= n
	s.forget(c.source)
	if c.holds -= n; c.holds > 0 {
		return
	}
	s.stopHolding(c)
	if c.empty != nil {
		close(c.empty)
		c.empty = nil
	}
}

// hold is Take; out has lost its place, and has to end before there is room. mu is held.
func (s *conns) hold(c *Conn, n int) (out *Conn, ok bool) {
	most := limits.Held
	if !c.letIn.Load() {
		most -= limits.HeldKept
	}
	switch {
	case c.closed:
		return nil, false
	case c.source.held+n > limits.HeldPerSource:
		s.logRefusal("memory of one source", c.source)
		out = s.oldestHolder(func(other *Conn) bool { return other.source == c.source })
	case s.held+n > most:
		s.logRefusal("memory", c.source)
		out = s.oldestHolder(func(*Conn) bool { return true })
	default:
		s.held += n
		c.source.held += n
		if c.holds += n; c.holding == nil && !c.letIn.Load() {
			c.holding = s.holders.PushBack(c)
		}
		return nil, true
	}
	if out != nil {
		s.remove(out)
		out.empty = make(chan struct{})
	}
	return out, false
}

// oldestHolder is the connection that has held something for the longest time, of those
// that may and on which nobody was let in; nil for none. mu is held.
func (s *conns) oldestHolder(may func(*Conn) bool) *Conn {
	for e := s.holders.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*Conn); may(c) {
			return c
		}
	}
	return nil
}

// stopHolding keeps c from giving way. mu is held.
func (s *conns) stopHolding(c *Conn) {
	if c.holding != nil {
		s.holders.Remove(c.holding)
		c.holding = nil
	}
}

// Admit says that a request goes on to an app: what it holds is bounded by how many may do
// so from now on.
func Admit(w http.ResponseWriter) {
	if own, ok := w.(interface{ Admit() }); ok {
		own.Admit()
	}
}

package http1

import (
	"net/http"
	"sync/atomic"
	"time"
)

// clock tells requests the time to a twentieth of a second, which is all they need, and
// has those that take long watched. It runs only while a request is under way.
type clock struct {
	server  *Server
	start   time.Time // with the monotonic clock, which nobody sets
	running atomic.Bool
	tick    atomic.Int64 // of tickEvery since start, from 1
	date    atomic.Pointer[date]
}

// date is the line of an answer's head.
type date struct {
	second int64 // Unix
	line   []byte
}

const tickEvery = 50 * time.Millisecond

// now has the clock run, and returns the tick. A request that has said since when it is
// under way asks once more: the clock may have stopped before that was to be seen.
func (c *clock) now() int64 {
	if !c.running.Load() {
		c.read()
		if c.running.CompareAndSwap(false, true) {
			time.AfterFunc(tickEvery, c.beat)
		}
	}
	return c.tick.Load()
}

// read sets the clock.
func (c *clock) read() {
	now := time.Now()
	c.tick.Store(int64(now.Sub(c.start)/tickEvery) + 1)
	if d := c.date.Load(); d == nil || d.second != now.Unix() {
		line := now.UTC().AppendFormat([]byte("Date: "), http.TimeFormat)
		c.date.Store(&date{now.Unix(), append(line, "\r\n"...)})
	}
}

// beat ticks until nothing is under way that is not watched yet.
func (c *clock) beat() {
	defer func() {
		if what := recover(); what != nil {
			c.running.Store(false) // the next request has it run again
			c.server.panicked(what, "")
		}
	}()
	c.read()
	if !c.server.watch(c.tick.Load()) {
		// A request that begins meanwhile is seen now, or finds the clock standing.
		c.running.Store(false)
		if !c.server.underWay() || !c.running.CompareAndSwap(false, true) {
			return
		}
	}
	time.AfterFunc(tickEvery, c.beat)
}

// watch has the requests watched that are under way since the tick before the last
// one, and says whether more are.
func (s *Server) watch(tick int64) (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		began := c.state.Load()
		if began > 0 && tick-began >= 2 {
			c.watch(began)
		} else if began > 0 {
			more = true
		}
	}
	return more
}

func (s *Server) underWay() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.state.Load() > 0 {
			return true
		}
	}
	return false
}

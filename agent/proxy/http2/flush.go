package http2

import (
	"runtime"
	"sync"
	"time"

	"porchlight/agent/proxy/limits"
)

const (
	// full is how much is written at a time: four TLS records, which leave together.
	full = 4 * limits.Record
	// enough is what is written without waiting for more of it.
	enough = full / 2
	// header is the size of a frame's.
	header = 9
)

// buffers are *[]byte for out, of whatever size they grew to.
var buffers = sync.Pool{New: func() any { return new(make([]byte, 0, 4<<10)) }}

// sink is where the Framer writes: the end of out.
type sink struct{ c *Conn }

func (s sink) Write(p []byte) (int, error) {
	s.c.buffer()
	s.c.out = append(s.c.out, p...)
	return len(p), nil
}

// buffer has out be one. mu is held.
func (c *Conn) buffer() {
	if c.out == nil {
		c.box = buffers.Get().(*[]byte)
		c.out = *c.box
	}
}

// data puts a DATA frame into out. mu is held.
func (c *Conn) data(st *stream, p []byte, end bool) {
	c.buffer()
	var flags byte
	if end {
		flags = 1 // END_STREAM
	}
	n, id := len(p), st.id
	c.out = append(c.out, byte(n>>16), byte(n>>8), byte(n), 0, flags, byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
	c.out = append(c.out, p...)
	st.window -= int64(n)
	c.window -= int64(n)
	c.sent += int64(n)
	c.empties.give(limits.EmptiesPerData)
}

// kick has a worker write what is in out, if nobody does. mu is held.
func (c *Conn) kick() {
	if len(c.out) == 0 || c.flushing || c.ended != nil {
		return
	}
	c.flushing, c.flusher = true, nil
	c.server.do(job{flush: c})
}

// flushOn writes on a worker what kick or flush left to it.
func (c *Conn) flushOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.out) > 0 && c.ended == nil {
		c.flushOnce()
	}
	c.flushed()
}

// flush writes what is in out, unless somebody does. st is whose handler it is that
// writes; nil for another goroutine. One that is done with its handler (all) writes on
// for others; another leaves that to a worker. mu is held, but not while writing.
func (c *Conn) flush(st *stream, all bool) {
	if len(c.out) == 0 || c.flushing || c.ended != nil {
		return
	}
	c.flushing, c.flusher = true, st
	if all && c.running > 1 {
		// Other answers may be about to be ready, and leave with this one.
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	for len(c.out) > 0 && c.ended == nil {
		if c.flushOnce(); len(c.out) > 0 && c.ended == nil && !all {
			c.flusher = nil
			c.server.do(job{flush: c})
			return
		}
	}
	c.flushed()
}

// flushed is called by who was flushing. mu is held.
func (c *Conn) flushed() {
	c.flushing, c.flusher = false, nil
	if c.quiet != nil {
		signal(c.quiet)
	}
	c.nextInQueue()
	c.left()
}

// flushOnce writes what is in out now. mu is held, but not while writing.
func (c *Conn) flushOnce() {
	out, box := c.out, c.box
	c.out, c.box, c.control = nil, nil, 0
	c.room.Broadcast()
	c.flushes++
	err := c.allowWrite()
	if err == nil {
		err = c.sendUnlocked(out)
	}
	if err != nil {
		c.fail(err)
	}
	if cap(out) <= 2*full {
		*box = out[:0]
		buffers.Put(box)
	}
	if c.quiet != nil {
		signal(c.quiet)
	}
	c.nextInQueue()
}

func (c *Conn) sendUnlocked(p []byte) error {
	c.mu.Unlock()
	defer c.mu.Lock() // also when it panics: whoever holds mu lets go of it
	_, err := c.raw.Write(p)
	return err
}

// allowWrite gives the visitor WriteStall to take what is written next. The deadline is
// set anew only when a quarter of that is gone, and stands after the write: a timer of
// each connection, which fire together. mu is held, so that it never undoes the
// one fail sets.
func (c *Conn) allowWrite() error {
	at := time.Now()
	if c.writeBy.Sub(at) >= limits.WriteStall*3/4 {
		return nil
	}
	c.writeBy = at.Add(together(limits.WriteStall))
	return c.raw.SetWriteDeadline(c.writeBy)
}

// claim waits until st may send some of want bytes, and says how many: what the windows,
// the visitor's frames and our buffer have room for. mu is held, but not while waiting.
func (c *Conn) claim(st *stream, want int) (int, error) {
	for {
		room := full - header - len(c.out)
		switch {
		case st.closed:
			c.nextInQueue() // it may have been this one's turn
			return 0, st.err
		case room < min(want, 1<<10) && !c.flushing, (st.window <= 0 || c.window <= 0) && len(c.out) > 0 && !c.flushing:
			c.flush(st, false)
		case st.window <= 0:
			c.nextInQueue()
			st.await()
		case c.window <= 0 || room < min(want, 1<<10):
			if !st.queued {
				st.queued = true
				c.queue = append(c.queue, st)
			}
			st.await()
		default:
			n := int(min(int64(want), int64(room), int64(c.frame), st.window, c.window))
			return n, nil
		}
	}
}

// makeRoom waits until a header block of st may go into out. Windows do not hold those
// back, so a visitor who does not read must. mu is held, but not while waiting.
func (c *Conn) makeRoom(st *stream) error {
	for !st.closed && len(c.out) >= full {
		if c.flushing {
			c.room.Wait()
		} else {
			c.flush(st, false)
		}
	}
	if st.closed {
		return st.err
	}
	return nil
}

// nextInQueue wakes the stream that has waited longest for room, if there is some. mu
// is held.
func (c *Conn) nextInQueue() {
	for len(c.queue) > 0 && c.window > 0 && len(c.out) < enough {
		st := c.queue[0]
		c.queue = c.queue[1:]
		st.queued = false
		if !st.closed {
			st.signal()
			return
		}
	}
	if len(c.queue) == 0 {
		c.queue = nil
	}
}

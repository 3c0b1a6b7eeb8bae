package http2

import (
	"crypto/rand"
	"time"

	frames "golang.org/x/net/http2"

	"porchlight/agent/proxy/limits"
)

// tick is the connection's one timer: it asks a silent visitor for a sign of life,
// and ends a connection on which nothing is asked any more.
func (c *Conn) tick() {
	defer c.caught()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return
	}
	at, silent := c.now(), c.lastRead.Load()
	switch {
	case c.lingers > 0 && at >= c.lingers:
		c.fail(errGone)
		return
	case c.pinged > 0 && at-c.pinged >= int64(limits.PingTimeout):
		c.fail(errSilent)
		return
	case c.isIdle() && !c.leaving && at-c.idle >= int64(limits.Idle):
		c.goAwaySoon(c.lastID)
	case c.pinged == 0 && !c.isIdle() && at-silent >= int64(limits.PingAfter):
		_, _ = rand.Read(c.pingData[:]) // does not fail
		_ = c.write.WritePing(false, c.pingData)
		c.controls()
		c.pinged = at
		c.kick()
	}
	c.rests = c.isIdle()
	c.timer.Reset(c.untilTick(at, silent))
}

// firstTick is how long until the connection is looked at: when it is idle, mostly.
func firstTick() time.Duration { return together(limits.PingAfter) }

// together is d, or up to some seconds less: until the same moment for all who begin to
// wait within those seconds, so that the processor wakes up once for them.
func together(d time.Duration) time.Duration {
	const some = 5 * time.Second
	return d - time.Duration(time.Now().UnixNano())%some
}

// untilTick is when there may be something to do: nobody is asked for a sign of life
// who asks for nothing, because the connection then ends by itself. mu is held.
func (c *Conn) untilTick(at, silent int64) time.Duration {
	next := silent + int64(limits.PingAfter)
	switch {
	case c.pinged > 0:
		next = c.pinged + int64(limits.PingTimeout)
	case c.rests && c.leaving:
		next = at + int64(limits.PingAfter)
	case c.rests:
		next = c.idle + int64(limits.Idle)
	}
	if c.isIdle() && !c.leaving {
		next = min(next, c.idle+int64(limits.Idle))
	}
	if c.lingers > 0 {
		next = min(next, c.lingers)
	}
	return max(time.Millisecond, time.Duration(next-at))
}

func (c *Conn) isIdle() bool { return len(c.streams) == 0 && c.running == 0 }

// shutdown tells the visitor to bring what follows on another connection. What is under way
// is answered; prompt closes as soon as it is.
func (c *Conn) shutdown(prompt bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return
	}
	c.prompt = c.prompt || prompt
	c.goAwaySoon(c.lastID)
	c.left()
}

// Shutdown ends the connection once what is under way is answered; the visitor is told to
// bring what follows on another one.
func (c *Conn) Shutdown() { c.shutdown(true) }

// Goodbye says that the connection ends soon: what is under way may still be answered,
// and whoever calls it closes.
func (c *Conn) Goodbye() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil && !c.leaving {
		_ = c.write.WriteGoAway(maxWindow, frames.ErrCodeNo, nil) // into memory
		c.kick()
	}
}

// goAwaySoon sends the GOAWAY of a graceful end, once. mu is held.
func (c *Conn) goAwaySoon(last uint32) {
	if c.leaving {
		return
	}
	c.leaving, c.code = true, frames.ErrCodeNo
	_ = c.write.WriteGoAway(last, frames.ErrCodeNo, nil) // into memory
	c.left()
	c.kick()
}

// left ends a connection that is left once nothing is under way: at once, or after the
// visitor had a moment to close it. mu is held.
func (c *Conn) left() {
	if !c.leaving || c.code != frames.ErrCodeNo || len(c.streams) > 0 || c.ended != nil {
		return
	}
	if c.prompt && len(c.out) == 0 && !c.flushing {
		c.fail(errGone)
		return
	}
	if c.lingers == 0 && c.timer != nil {
		c.lingers = c.now() + int64(limits.Parting)
		c.timer.Reset(limits.Parting)
	}
}

// Package lazy has the context of a request, for servers that make many of them: the
// channel is made when somebody asks for it, which most requests end before.
package lazy

import (
	"context"
	"sync"
)

// Context ends by Cancel: when the visitor has gone, when the server ends, or when the
// handler has returned. What was derived from it, and the channel it gave, end for good.
type Context struct {
	context.Context // of the connection, for its values

	mu    sync.Mutex
	done  chan struct{}        // nil until somebody asks; guarded by mu
	err   error                // once cancelled; guarded by mu
	after map[*func()]struct{} // guarded by mu
	dead  bool                 // no request follows; guarded by mu
}

func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		}
	}
	return c.done
}

func (c *Context) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// AfterFunc is how package context follows a context that is not its own, without a
// goroutine.
func (c *Context) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	if c.after == nil {
		c.after = map[*func()]struct{}{}
	}
	c.after[&f] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, waits := c.after[&f]
		delete(c.after, &f)
		return waits
	}
}

// Cancel ends the context for good. It never waits, and calls nothing of anybody else's.
func (c *Context) Cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = true
	c.end()
}

// Finish ends the context of a request, and begins that of the next one on the same
// connection. It says whether one may follow: not while somebody is still being told of
// the end of this one, who asks for its error.
func (c *Context) Finish() (more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = c.dead || len(c.after) > 0
	c.end()
	if !c.dead {
		c.done, c.err = nil, nil
	}
	return !c.dead
}

// end tells whoever waits. mu is held.
func (c *Context) end() {
	if c.err != nil {
		return
	}
	c.err = context.Canceled
	if c.done != nil {
		close(c.done)
	}
	if len(c.after) == 0 {
		return
	}
	for f := range c.after {
		go (*f)()
	}
	clear(c.after)
}

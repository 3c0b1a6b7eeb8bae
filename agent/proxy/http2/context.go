package http2

import (
	"context"
	"sync"
)

// streamContext is the context of a request: it ends with its stream. Most requests
// end before anybody asked to be told, so the channel is made when somebody does.
type streamContext struct {
	context.Context // the connection's, for its values

	mu    sync.Mutex
	err   error                // guarded by mu
	done  chan struct{}        // nil until asked for; guarded by mu
	after map[*func()]struct{} // guarded by mu
}

func (c *streamContext) Done() <-chan struct{} {
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

func (c *streamContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// AfterFunc spares package context a goroutine for each context made of this one.
func (c *streamContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	if c.after == nil {
		c.after = map[*func()]struct{}{}
	}
	key := &f
	c.after[key] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, waits := c.after[key]
		delete(c.after, key)
		return waits
	}
}

// cancel never waits, and calls nothing of anybody else's.
func (c *streamContext) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = context.Canceled
	if c.done != nil {
		close(c.done)
	}
	for f := range c.after {
		go (*f)()
	}
	c.after = nil
}

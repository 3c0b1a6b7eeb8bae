package tunnel_test

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/agent/tunnel"
)

// slow is a connection with an uplink of so many bytes a second and all the room that is
// needed before it.
type slow struct {
	net.Conn
	queue chan []byte
	done  chan struct{}
	once  sync.Once
}

func newSlow(conn net.Conn, rate int, sending *sync.WaitGroup) *slow {
	c := &slow{Conn: conn, queue: make(chan []byte, 10_000), done: make(chan struct{})}
	sending.Go(func() {
		for {
			select {
			case b := <-c.queue:
				time.Sleep(time.Duration(len(b)) * time.Second / time.Duration(rate))
				_, _ = conn.Write(b) // fails once it is closed
			case <-c.done:
				return
			}
		}
	})
	return c
}

func (c *slow) Write(b []byte) (int, error) {
	select {
	case c.queue <- bytes.Clone(b):
		return len(b), nil
	case <-c.done:
		return 0, net.ErrClosed
	}
}

func (c *slow) SetDeadline(t time.Time) error    { return c.SetReadDeadline(t) }
func (c *slow) SetWriteDeadline(time.Time) error { return nil }

func (c *slow) Close() error {
	c.once.Do(func() { close(c.done) })
	return c.Conn.Close()
}

// Weakness: thousands of visits named at once filled a slow uplink before the first ping of
// each new session, which was given up for the relay's silence, again and again. Checked by
// the bubble's clock, at 60 kB a second with something open: the relay is connected to once
// more, and learns of all.
func TestNamingVisitsKeepsNoSlowUplinkAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &piped{}
		tun, stop := p.start(t, false)
		const most = tunnel.AbortedMost
		for range most {
			visitor := p.visit(t, tun).(abortable)
			visitor.LetIn()
			_ = visitor.Abort()
		}
		defer p.opens()()
		p.mu.Lock()
		p.uplink = 60_000 // from the next connection on
		p.mu.Unlock()
		p.fallSilent()
		if took := p.leaves(); took > 3*time.Second {
			t.Errorf("silence is noticed after %v", took)
		}
		time.Sleep(time.Minute)
		p.mu.Lock()
		connections, named := len(p.dials), p.named
		p.mu.Unlock()
		if connections != 2 || named != most {
			t.Errorf("%d connections were made, and %d visits named", connections, named)
		}
		synctest.Wait()
		stop()
	})
}

//go:build linux

package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"

	"porchlight/control/controlapi/tunnelwire"
)

// road is what an agent reaches its relay by, so that its control connection can be cut
// while those that carry visitors stay.
type road struct {
	ln   net.Listener
	to   string // the relay; set before anybody comes
	done sync.WaitGroup

	mu      sync.Mutex
	conns   map[*net.TCPConn]bool // whether it is a control connection's; guarded by mu
	control int                   // control connections so far; guarded by mu
	closed  bool                  // guarded by mu
}

func startRoad() (*road, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &road{ln: ln, conns: map[*net.TCPConn]bool{}}, nil
}

// open has the road lead to a relay.
func (r *road) open(to string) {
	r.to = to
	r.done.Go(func() {
		for {
			c, err := r.ln.Accept()
			if err != nil {
				return
			}
			r.done.Go(func() { r.pass(c.(*net.TCPConn)) })
		}
	})
}

func (r *road) pass(agent *net.TCPConn) {
	defer agent.Close()
	if !r.keep(false, agent) {
		return
	}
	defer r.forget(agent)
	from := bufio.NewReaderSize(agent, 4<<10)
	first, err := from.Peek(1)
	if err != nil {
		return
	}
	conn, err := net.Dial("tcp", r.to)
	if err != nil {
		return
	}
	defer conn.Close()
	relay := conn.(*net.TCPConn)
	if !r.keep(first[0] != tunnelwire.Magic[0], agent, relay) {
		return
	}
	defer r.forget(relay)
	var both sync.WaitGroup
	both.Go(func() { carry(relay, agent, from) })
	both.Go(func() { carry(agent, relay, relay) })
	both.Wait()
}

// keep notes connections for close, and says whether the road is still open: after close
// nobody would end them.
func (r *road) keep(control bool, conns ...*net.TCPConn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	for _, c := range conns {
		r.conns[c] = control
	}
	if control {
		r.control++
	}
	return true
}

func (r *road) forget(c *net.TCPConn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}

// carry passes on what comes from one side, and how it ends: in order, or by a reset.
func carry(to, from *net.TCPConn, r io.Reader) {
	_, err := io.Copy(to, r)
	if err == nil {
		_ = to.CloseWrite() // it may be gone already
		return
	}
	for _, c := range []*net.TCPConn{to, from} {
		_ = c.SetLinger(0)
		c.Close()
	}
}

// cut ends the control connections, and returns how many there were before.
func (r *road) cut() (before int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c, control := range r.conns {
		if control {
			c.Close()
		}
	}
	return r.control
}

// controls is how many control connections there were.
func (r *road) controls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.control
}

func (r *road) close() error {
	err := r.ln.Close()
	r.mu.Lock()
	r.closed = true
	for c := range r.conns {
		err = errors.Join(err, c.Close())
	}
	r.mu.Unlock()
	r.done.Wait()
	return err
}

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

// way is what an agent reaches its relay by, so that its control connection can be cut
// while those that carry visitors stay.
type way struct {
	ln   net.Listener
	to   string // the relay; set before anybody comes
	done sync.WaitGroup

	mu      sync.Mutex
	conns   map[*net.TCPConn]bool // whether it is a control connection's; guarded by mu
	control int                   // control connections so far; guarded by mu
}

func startWay() (*way, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &way{ln: ln, conns: map[*net.TCPConn]bool{}}, nil
}

// open has the way lead to a relay.
func (w *way) open(to string) {
	w.to = to
	w.done.Go(func() {
		for {
			c, err := w.ln.Accept()
			if err != nil {
				return
			}
			w.done.Go(func() { w.pass(c.(*net.TCPConn)) })
		}
	})
}

func (w *way) pass(agent *net.TCPConn) {
	defer agent.Close()
	r := bufio.NewReaderSize(agent, 4<<10)
	first, err := r.Peek(1)
	if err != nil {
		return
	}
	conn, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer conn.Close()
	relay, control := conn.(*net.TCPConn), first[0] != tunnelwire.Magic[0]
	w.mu.Lock()
	w.conns[agent], w.conns[relay] = control, control
	if control {
		w.control++
	}
	w.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { carry(relay, agent, r) })
	both.Go(func() { carry(agent, relay, relay) })
	both.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, agent)
	delete(w.conns, relay)
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
func (w *way) cut() (before int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c, control := range w.conns {
		if control {
			c.Close()
		}
	}
	return w.control
}

// controls is how many control connections there were.
func (w *way) controls() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.control
}

func (w *way) close() error {
	err := w.ln.Close()
	w.mu.Lock()
	for c := range w.conns {
		err = errors.Join(err, c.Close())
	}
	w.mu.Unlock()
	w.done.Wait()
	return err
}

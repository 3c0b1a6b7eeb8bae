package socket

import (
	"context"
	"net"
	"sync"
)

// Handed is a listener of connections that are there already: those that Give is called
// with. It is safe for concurrent use.
type Handed struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// NewHanded makes one.
func NewHanded() *Handed {
	return &Handed{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Give waits for conn to be accepted, and is false where nobody did before ctx ended or the
// listener was closed.
func (h *Handed) Give(ctx context.Context, conn net.Conn) bool {
	select {
	case h.conns <- conn:
		return true
	case <-h.done:
	case <-ctx.Done():
	}
	return false
}

// Accept returns the next connection, or net.ErrClosed after Close.
func (h *Handed) Accept() (net.Conn, error) {
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close has nobody be accepted any more.
func (h *Handed) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

// Addr is no address one could dial.
func (h *Handed) Addr() net.Addr { return &net.TCPAddr{} }

// Package http1 serves visitors' HTTP/1.1: the plain requests of a connection, from
// one read to one write, on one goroutine.
//
// In comes a connection after its TLS handshake. Each plain head (head.go) becomes an
// *http.Request of the same values that net/http would give it, for the same
// http.Handler; with the first head that is not plain the connection goes to
// net/http, with every byte that was read and not answered, and stays there. So a
// request means the same on both ways, and whatever is odd has one judge.
//
// What a request needs is made once for a connection and used again: the handler must
// leave the request, its header and its context alone once it has returned, as it
// must the ResponseWriter. Strings it took from them stay valid.
package http1

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is a visitor's connection after its TLS handshake.
type Conn interface {
	net.Conn
	ConnectionState() tls.ConnectionState
	CloseWrite() error
	// Abort closes it without a goodbye.
	Abort()
	// WriteBoth writes one after the other, together where that saves a system call.
	WriteBoth(a, b []byte) error
}

// Config of New.
type Config struct {
	Handler http.Handler
	// State is told when a connection's request begins to be answered
	// (http.StateActive), and when it was (http.StateIdle). It must not wait. Nil for
	// nobody who wants to know.
	State func(net.Conn, http.ConnState)
	// Broken is told of a panic or an inconsistency that is not the visitor's doing;
	// the connection ends by it. Nil for nobody who wants to know.
	Broken func(what any)
	Log    *slog.Logger
}

// Server is made by New and ended by Shutdown or Close.
type Server struct {
	config  Config
	clock   clock
	closing atomic.Bool // no connection is kept for another request

	mu     sync.Mutex
	conns  map[*conn]struct{} // guarded by mu
	closed bool               // nothing is served any more; guarded by mu
	serves sync.WaitGroup     // conns
}

// New starts nothing.
func New(c Config) *Server {
	if c.State == nil {
		c.State = func(net.Conn, http.ConnState) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{config: c, conns: map[*conn]struct{}{}}
	s.clock.server, s.clock.start = s, time.Now()
	return s
}

// Serve serves a connection until it ends, and closes it. handed says that it is
// not over: what comes on it next, beginning with rest, is not plain, and nothing
// of it was answered. ctx gives the requests' contexts their values; they end with the
// request, the visitor and the server.
func (s *Server) Serve(ctx context.Context, rw Conn) (rest []byte, handed bool) {
	c := newConn(s, ctx, rw)
	if !s.add(c) {
		_ = rw.Close()
		return nil, false
	}
	defer s.remove(c)
	done := false
	defer func() {
		if !done {
			s.panicked(recover(), c.remote)
			rw.Abort()
		}
	}()
	rest, handed = c.serve()
	done = true
	return rest, handed
}

func (s *Server) add(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.conns[c] = struct{}{}
		s.serves.Add(1)
	}
	return !s.closed
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.serves.Done()
}

// Shutdown closes connections without a request under way, and the others after
// theirs. It returns when none is left, or ctx's error when that ends first.
func (s *Server) Shutdown(ctx context.Context) error {
	s.closing.Store(true)
	s.mu.Lock()
	for c := range s.conns {
		if c.state.CompareAndSwap(idle, ended) {
			_ = c.rw.SetReadDeadline(past) // so that the one who serves it closes it
		}
	}
	s.closed = true
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() { defer close(ended); s.serves.Wait() }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends all requests and connections.
func (s *Server) Close() {
	s.closing.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for c := range s.conns {
		c.ctx.Cancel()
		c.rw.Abort()
	}
}

// past is a deadline that has a read or write end now.
var past = time.Unix(1, 0)

// panicked judges what a handler panicked with.
func (s *Server) panicked(why any, remote string) {
	if why == http.ErrAbortHandler {
		return
	}
	if s.config.Broken != nil {
		s.config.Broken(why)
	}
	s.config.Log.Error("a request of a visitor met a fault of ours; its connection was closed", "from", remote, "fault", fmt.Sprint(why), "stack", string(debug.Stack()))
}

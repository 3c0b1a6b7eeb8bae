// Package http2 serves visitors' HTTP/2 connections.
//
// Frames and header blocks are read and written by golang.org/x/net/http2 and its
// hpack; the streams are ours. What a visitor sends means what it means to net/http's
// server, or is refused: the handler gets the same *http.Request for the same frames.
//
// One goroutine reads a connection (Conn.Serve) and never writes. Handlers run on
// goroutines that are used again (Server.do). Whoever has something to send puts whole
// frames into the connection's buffer, and the first who finds nobody writing writes
// what is there (Conn.flush). One mutex of the connection guards all of its streams.
package http2

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"porchlight/agent/proxy/limits"
)

// Config of a Server.
type Config struct {
	Handler http.Handler
	// State is told when the first of a connection's streams begins to be answered
	// (http.StateActive), and when the last is (http.StateIdle). It must not wait, nor
	// call the connection. Nil for nobody who wants to know.
	State func(net.Conn, http.ConnState)
	// TooLong marks the header of a request whose head was too long, of which only
	// limits.Telling are there, with the sizes of the whole. Nil has it answered here.
	TooLong func(h http.Header, cookies, rest, fields int)
	// Broken is told of a panic or an inconsistency that is not the visitor's doing;
	// the connection ends by it. Nil for nobody who wants to know.
	Broken func(what any)
	Log    *slog.Logger
}

// Server serves connections with one handler.
type Server struct {
	config Config
	serves sync.WaitGroup // connections
	works  sync.WaitGroup // workers

	mu     sync.Mutex
	conns  map[*Conn]struct{} // guarded by mu
	idle   []chan job         // workers without work, the last to rest at the end; guarded by mu
	closed bool               // guarded by mu
}

// maxIdle is how many workers wait for work; others end.
const maxIdle = limits.Streams

// New makes a server, which does nothing until its connections are served.
func New(c Config) *Server {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{config: c, conns: map[*Conn]struct{}{}}
}

// A job is a stream to answer, or a connection whose frames are to be written.
type job struct {
	stream *stream
	flush  *Conn
}

func (j job) run() {
	if j.stream != nil {
		defer j.stream.c.caught() // of what follows its handler
		j.stream.serve()
		return
	}
	defer j.flush.caught()
	j.flush.flushOn()
}

// do has a worker do j: one that rests, or a new one.
func (s *Server) do(j job) {
	s.mu.Lock()
	last := len(s.idle) - 1
	if last >= 0 {
		worker := s.idle[last]
		s.idle = s.idle[:last]
		s.mu.Unlock()
		worker <- j // has room
		return
	}
	s.mu.Unlock()
	s.works.Go(func() { s.work(j) })
}

func (s *Server) work(j job) {
	mine := make(chan job, 1)
	for ok := true; ok; {
		j.run()
		if !s.rest(mine) {
			return
		}
		j, ok = <-mine
	}
}

// rest has a worker wait for its next job, unless enough do.
func (s *Server) rest(mine chan job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.idle) >= maxIdle {
		return false
	}
	s.idle = append(s.idle, mine)
	return true
}

// add is false when the server is closed.
func (s *Server) add(c *Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.conns[c] = struct{}{}
	s.serves.Add(1)
	return true
}

// remove forgets a connection. With the last one, workers that wait end.
func (s *Server) remove(c *Conn) {
	s.mu.Lock()
	delete(s.conns, c)
	last := len(s.conns) == 0
	s.mu.Unlock()
	if last {
		s.rested()
	}
	s.serves.Done()
}

// rested ends the workers that wait.
func (s *Server) rested() {
	s.mu.Lock()
	idle := s.idle
	s.idle = nil
	s.mu.Unlock()
	for _, worker := range idle {
		close(worker)
	}
}

func (s *Server) all() (conns []*Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		conns = append(conns, c)
	}
	return conns
}

// Shutdown takes no more connections, has those there are take no more requests, and
// waits until all that are under way are answered, or until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, c := range s.all() {
		c.shutdown(true)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); s.serves.Wait() }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends every connection and returns once every handler has returned.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, c := range s.all() {
		c.abort(errServerClosed)
	}
	s.serves.Wait()
	s.rested()
	s.works.Wait()
}

func (s *Server) broken(what any) {
	s.config.Log.Error("HTTP/2: an error of our own; its connection ends", "what", what)
	if s.config.Broken != nil {
		s.config.Broken(what)
	}
}

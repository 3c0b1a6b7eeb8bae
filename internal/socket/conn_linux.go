//go:build linux && !race

package socket

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Wrap is a connection that reads and writes so, where that is possible, and otherwise
// the connection itself.
func Wrap(conn net.Conn) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return conn
	}
	c := &wrapped{TCPConn: tcp, raw: raw}
	c.in.step, c.out.step = c.in.read, c.out.write
	return c
}

// wrapped is a TCP connection and is used as one.
type wrapped struct {
	*net.TCPConn
	raw     syscall.RawConn
	in, out side
}

// side is one direction. Those who use it at once take turns, as with net's own.
type side struct {
	step func(fd uintptr) (done bool) // read or write, made once

	mu  sync.Mutex
	p   []byte // what is to be read into or written; guarded by mu, as what follows
	n   int    // bytes of it that were
	err error
	of  *resting // nil for none
}

func (s *side) read(fd uintptr) (done bool) {
	s.n, s.err = Read(fd, s.p)
	return s.err != syscall.EAGAIN
}

func (s *side) write(fd uintptr) (done bool) {
	for s.err = nil; s.n < len(s.p); {
		n, err := Write(fd, s.p[s.n:])
		if err != nil {
			s.err = err
			if err == syscall.EAGAIN && s.of != nil {
				s.of.bound()
			}
			return err != syscall.EAGAIN
		}
		s.n += n
	}
	return true
}

// run has step called by one of the raw connection's methods until it is done, or until
// the connection is closed or a deadline is over.
func (s *side) run(p []byte, until func(func(uintptr) bool) error) (n int, err, call error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.p, s.n, s.err = p, 0, nil
	err = until(s.step)
	n, call = s.n, s.err
	s.p, s.err = nil, nil
	return n, err, call
}

func (c *wrapped) Read(p []byte) (int, error) {
	n, err, call := c.in.run(p, c.raw.Read)
	return n, readFailed(c.TCPConn, p, n, err, call)
}

func (c *wrapped) Write(p []byte) (int, error) {
	n, err, call := c.out.run(p, c.raw.Write)
	if err != nil || call != nil {
		return n, failed(c.TCPConn, "write", err, call)
	}
	return n, nil
}

// readers and writers are for those that are not wrapped, *side.
var readers, writers = sides((*side).read), sides((*side).write)

func sides(step func(*side, uintptr) bool) *sync.Pool {
	return &sync.Pool{New: func() any {
		s := new(side)
		s.step = func(fd uintptr) bool { return step(s, fd) }
		return s
	}}
}

// Rest is what reads and writes without telling the scheduler, for a connection that is not
// wrapped: one of many that rest, for which next to nothing is kept meanwhile.
func Rest(conn *net.TCPConn) Resting {
	raw, err := conn.SyscallConn()
	if err != nil {
		return conn // whose methods say why
	}
	return &resting{conn: conn, raw: raw}
}

type resting struct {
	conn *net.TCPConn
	raw  syscall.RawConn

	mu     sync.Mutex
	until  time.Time // by when writes have to be done; guarded by mu
	waited bool      // a write had to wait: the scheduler is told of deadlines; guarded by mu
}

// SetWriteDeadline tells the scheduler of no deadline before a write has to wait, which most
// never do: it wakes a thread to watch the time. A write that waits already hears of it.
func (r *resting) SetWriteDeadline(until time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until = until
	if !r.waited {
		return nil
	}
	return r.conn.SetWriteDeadline(until)
}

// bound is called when a write has to wait.
func (r *resting) bound() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.waited {
		r.waited = true
		_ = r.conn.SetWriteDeadline(r.until) // where it is closed the write fails, too
	}
}

func (r *resting) Read(p []byte) (int, error) {
	s := readers.Get().(*side)
	n, err, call := s.run(p, r.raw.Read)
	readers.Put(s)
	return n, readFailed(r.conn, p, n, err, call)
}

func (r *resting) Write(p []byte) (int, error) {
	s := writers.Get().(*side)
	s.of = r
	n, err, call := s.run(p, r.raw.Write)
	s.of = nil
	writers.Put(s)
	if err != nil || call != nil {
		return n, failed(r.conn, "write", err, call)
	}
	return n, nil
}

// readFailed is the error of a read of n bytes into p, nil where there is none.
func readFailed(c *net.TCPConn, p []byte, n int, err, call error) error {
	switch {
	case err != nil, call != nil:
		return failed(c, "read", err, call)
	case n == 0 && len(p) > 0:
		return io.EOF
	}
	return nil
}

// failed is the error that net's own method would give. err is of the connection, call of
// the system call. Who writes keeps no room for it on the stack.
//
//go:noinline
func failed(c *net.TCPConn, op string, err, call error) error {
	if raw, ok := errors.AsType[*net.OpError](err); ok {
		err = raw.Err
	} else if err == nil {
		err = os.NewSyscallError(op, call)
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

//go:build linux && !race

package socket

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
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
	switch {
	case err != nil, call != nil:
		return n, c.failed("read", err, call)
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

func (c *wrapped) Write(p []byte) (int, error) {
	n, err, call := c.out.run(p, c.raw.Write)
	if err != nil || call != nil {
		return n, c.failed("write", err, call)
	}
	return n, nil
}

// sides are for those that are not wrapped, *side.
var sides = sync.Pool{New: func() any {
	s := new(side)
	s.step = s.write
	return s
}}

// NewWriter is what writes so to a connection that is not wrapped, for one of which many
// rest: next to nothing is kept for it.
func NewWriter(conn *net.TCPConn) io.Writer {
	raw, err := conn.SyscallConn()
	if err != nil {
		return conn // whose Write says why
	}
	return &writer{conn, raw}
}

type writer struct {
	conn *net.TCPConn
	raw  syscall.RawConn
}

func (w *writer) Write(p []byte) (int, error) {
	s := sides.Get().(*side)
	n, err, call := s.run(p, w.raw.Write)
	sides.Put(s)
	if err != nil || call != nil {
		return n, failed(w.conn, "write", err, call)
	}
	return n, nil
}

func (c *wrapped) failed(op string, err, call error) error { return failed(c.TCPConn, op, err, call) }

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

package private

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/windows"
)

// conn is one end of a pipe. What the system is asked for is waited for by an event, one
// for each direction: its completion port, which Go's own files use, was never tried
// with pipes under Wine.
type conn struct {
	handle  windows.Handle
	address address
	pid     int // at the other end
	in, out side
}

func newConn(h windows.Handle, at address) (*conn, error) {
	c := &conn{handle: h, address: at}
	for _, s := range []*side{&c.in, &c.out} {
		s.handle = h
		var err error
		if s.done, err = windows.CreateEvent(nil, 1, 0, nil); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// PID is the process at the other end, one of this user's.
func (c *conn) PID() int { return c.pid }

func (c *conn) LocalAddr() net.Addr  { return c.address }
func (c *conn) RemoteAddr() net.Addr { return c.address }

// connect waits for a program to connect to this end.
func (c *conn) connect() error {
	_, err := c.in.do(func(under *windows.Overlapped) error { return windows.ConnectNamedPipe(c.handle, under) })
	if errors.Is(err, windows.ERROR_PIPE_CONNECTED) {
		return nil
	}
	return err
}

func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	p = p[:min(len(p), maxPiece)]
	for {
		var got uint32
		n, err := c.in.do(func(under *windows.Overlapped) error { return windows.ReadFile(c.handle, p, &got, under) })
		runtime.KeepAlive(p)
		switch {
		case n > 0:
			return n, nil
		case isEnd(err):
			return 0, io.EOF
		case err != nil:
			return 0, c.failed("read", err)
		} // else somebody wrote nothing, which ends nothing
	}
}

func (c *conn) Write(p []byte) (wrote int, err error) {
	for len(p) > 0 {
		piece := p[:min(len(p), maxPiece)]
		var put uint32
		n, err := c.out.do(func(under *windows.Overlapped) error { return windows.WriteFile(c.handle, piece, &put, under) })
		runtime.KeepAlive(piece)
		wrote, p = wrote+n, p[n:]
		if err != nil {
			return wrote, c.failed("write", err)
		}
	}
	return wrote, nil
}

// isEnd says whether the other end was closed.
func isEnd(err error) bool {
	return errors.Is(err, windows.ERROR_BROKEN_PIPE) || errors.Is(err, windows.ERROR_PIPE_NOT_CONNECTED) || errors.Is(err, windows.ERROR_NO_DATA)
}

func (c *conn) failed(op string, err error) error {
	return &net.OpError{Op: op, Net: c.address.Network(), Addr: c.address, Err: err}
}

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.in.until(t), c.out.until(t))
}
func (c *conn) SetReadDeadline(t time.Time) error  { return c.in.until(t) }
func (c *conn) SetWriteDeadline(t time.Time) error { return c.out.until(t) }

// Close ends what is under way, and then lets go of the pipe. What was written can still
// be read at the other end.
func (c *conn) Close() error {
	if !c.in.close() || !c.out.close() {
		return c.failed("close", net.ErrClosed)
	}
	for _, s := range []*side{&c.in, &c.out} {
		s.turn.Lock() // until the call that was under way has ended
		windows.CloseHandle(s.done)
		s.turn.Unlock()
	}
	return windows.CloseHandle(c.handle)
}

// side is one direction: reading, which waiting for a connection counts as, or writing.
type side struct {
	handle windows.Handle
	done   windows.Handle // an event: the call under way has ended
	turn   sync.Mutex     // held by who reads, or writes

	mu       sync.Mutex
	under    windows.Overlapped // the call under way; here, for the system keeps its address
	underWay bool
	closed   bool
	deadline time.Time
	timer    *time.Timer // of the deadline
}

// do makes a call and waits until it has ended. It fails with net.ErrClosed after close,
// and with os.ErrDeadlineExceeded once the deadline has passed.
func (s *side) do(call func(*windows.Overlapped) error) (int, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	for {
		if err := s.begin(call); err != nil {
			return 0, err
		}
		var n uint32
		err := windows.GetOverlappedResult(s.handle, &s.under, &n, true)
		s.end()
		if n == 0 && errors.Is(err, windows.ERROR_OPERATION_ABORTED) {
			continue // begin says why, or the deadline has moved meanwhile
		}
		if n > 0 && errors.Is(err, windows.ERROR_OPERATION_ABORTED) {
			err = nil // the next call says why
		}
		return int(n), err
	}
}

func (s *side) begin(call func(*windows.Overlapped) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return net.ErrClosed
	case s.late():
		return os.ErrDeadlineExceeded
	}
	if err := windows.ResetEvent(s.done); err != nil {
		return err
	}
	s.under = windows.Overlapped{HEvent: s.done}
	if err := call(&s.under); err != nil && !errors.Is(err, windows.ERROR_IO_PENDING) {
		return err
	}
	s.underWay = true
	return nil
}

func (s *side) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underWay = false
}

// late wants s.mu to be held.
func (s *side) late() bool { return !s.deadline.IsZero() && !time.Now().Before(s.deadline) }

// stop ends the call under way, if any; s.mu has to be held.
func (s *side) stop() {
	if s.underWay {
		_ = windows.CancelIoEx(s.handle, &s.under) // fails when it has just ended
	}
}

// until sets the deadline, for the call under way too.
func (s *side) until(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.deadline, s.timer = t, nil
	switch {
	case t.IsZero():
	case s.late():
		s.stop()
	default:
		s.timer = time.AfterFunc(time.Until(t), s.passed)
	}
	return nil
}

// passed ends the call under way if the deadline has not moved meanwhile.
func (s *side) passed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.late() {
		s.stop()
	}
}

// close is false when it was closed before.
func (s *side) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.stop()
	return true
}

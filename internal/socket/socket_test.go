package socket_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"porchlight/internal/socket"
	"porchlight/test/programs"
)

// pair is a wrapped connection and its other end.
func pair(t *testing.T) (wrapped net.Conn, other *net.TCPConn) {
	t.Helper()
	dialled, taken := programs.Connected(t)
	return socket.Wrap(dialled), taken
}

// Promised: a wrapped connection behaves as the one below it.
// Checked, with more than a socket holds: all bytes in order both ways, the end of the
// stream, and that half of the connection can be ended.
func TestBytesGoBothWays(t *testing.T) {
	t.Parallel()
	conn, other := pair(t)
	sent := make([]byte, 16<<20)
	rand.Read(sent)
	go func() {
		_, err := io.Copy(other, other)
		other.CloseWrite()
		if err != nil {
			t.Errorf("the other end: %v", err)
		}
	}()
	go func() {
		if n, err := conn.Write(sent); n != len(sent) || err != nil {
			t.Errorf("wrote %d bytes of %d: %v", n, len(sent), err)
		}
		conn.(interface{ CloseWrite() error }).CloseWrite()
	}()
	got, err := io.ReadAll(struct{ io.Reader }{conn})
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%d of %d bytes came back, or others: %v", len(got), len(sent), err)
	}
	if n, err := conn.Read(nil); n != 0 || err != nil {
		t.Fatalf("a read into nothing gives %d, %v", n, err)
	}
}

// Checked: whoever waits is woken by a deadline and by Close, with the errors and the
// words of net's own connections.
func TestWaitsEnd(t *testing.T) {
	t.Parallel()
	conn, other := pair(t)
	deadline := func(set func(time.Time) error) {
		programs.Must(t, set(time.Now().Add(10*time.Millisecond)))
	}
	deadline(conn.SetReadDeadline)
	_, err := conn.Read(make([]byte, 1))
	expect(t, err, "read", os.ErrDeadlineExceeded)

	deadline(conn.SetWriteDeadline)
	n, err := conn.Write(make([]byte, 64<<20)) // more than both sockets hold
	expect(t, err, "write", os.ErrDeadlineExceeded)
	if got, err := io.ReadFull(other, make([]byte, n)); got != n || err != nil {
		t.Fatalf("of %d bytes said to be written %d came: %v", n, got, err)
	}

	programs.Must(t, conn.SetDeadline(time.Time{}))
	failed := make(chan error)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		failed <- err
	}()
	conn.Close()
	expect(t, <-failed, "read", net.ErrClosed)
	_, err = conn.Write([]byte("x"))
	expect(t, err, "write", net.ErrClosed)
}

// Checked: a reset is an error of the system call, as it is of net's own.
func TestResets(t *testing.T) {
	t.Parallel()
	conn, other := pair(t)
	other.SetLinger(0)
	other.Close()
	_, err := conn.Read(make([]byte, 1))
	expect(t, err, "read", syscall.ECONNRESET)
}

func expect(t *testing.T, err error, op string, is error) {
	t.Helper()
	if own, ok := errors.AsType[*net.OpError](err); !ok || own.Op != op || own.Net != "tcp" || !errors.Is(err, is) {
		t.Fatalf("the error is %v (%T), want one of %s that is %v", err, err, op, is)
	}
}

// Checked: what is written without wrapping arrives, and fails alike.
func TestRest(t *testing.T) {
	t.Parallel()
	_, conn := pair(t)
	wrapped, other := pair(t)
	defer conn.Close()
	sent := make([]byte, 8<<20)
	rand.Read(sent)
	go func() {
		if n, err := socket.Rest(other).Write(sent); n != len(sent) || err != nil {
			t.Errorf("wrote %d bytes of %d: %v", n, len(sent), err)
		}
		other.CloseWrite()
	}()
	if got, err := io.ReadAll(struct{ io.Reader }{wrapped}); err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%d of %d bytes came, or others: %v", len(got), len(sent), err)
	}
	w := socket.Rest(conn)
	conn.Close()
	_, err := w.Write(sent)
	if !errors.Is(err, net.ErrClosed) {
		t.Fatalf("writing to what is closed gives %v", err)
	}
}

// Checked: a write that has to wait does so until its deadline, which does not outlast it; and
// what is read is what came, until the end.
func TestRestWaitsUntilTheDeadline(t *testing.T) {
	t.Parallel()
	conn, other := programs.Connected(t)
	w := socket.Rest(conn)
	programs.Must(t, w.SetWriteDeadline(time.Now().Add(time.Millisecond)))
	much := make([]byte, 64<<20) // more than both sockets hold
	n, err := w.Write(much)
	expect(t, err, "write", os.ErrDeadlineExceeded)
	programs.Must(t, w.SetWriteDeadline(time.Time{}))
	go func() {
		_, _ = w.Write(much[n:])
		_ = conn.Close()
	}()
	if got, err := io.ReadAll(struct{ io.Reader }{socket.Rest(other)}); err != nil || len(got) != len(much) {
		t.Errorf("%d of %d bytes came: %v", len(got), len(much), err)
	}
}

// Attack: an agent that reads nothing makes TLS write without a deadline; another goroutine
// sets one while that write waits already.
// Checked: it holds for that write.
func TestADeadlineReachesAWriteThatWaits(t *testing.T) {
	t.Parallel()
	conn, _ := programs.Connected(t)
	w := socket.Rest(conn)
	much := make([]byte, 64<<20) // more than both sockets hold
	ended := make(chan error)
	go func() {
		_, err := w.Write(much)
		ended <- err
	}()
	time.Sleep(50 * time.Millisecond) // the write waits by then; where it does not, this shows less
	programs.Must(t, w.SetWriteDeadline(time.Now().Add(time.Millisecond)))
	expect(t, <-ended, "write", os.ErrDeadlineExceeded)
}

// Checked: what is no TCP connection stays what it is.
func TestOthersStayThemselves(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer b.Close()
	defer a.Close()
	if socket.Wrap(a) != a {
		t.Fatal("a pipe was wrapped")
	}
}

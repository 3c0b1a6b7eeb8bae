package socket_test

import (
	"net"
	"syscall"
	"testing"

	"porchlight/internal/socket"
	"porchlight/test/programs"
)

// Promised: the other side hears of the end before Cut returns, whoever is busy with the
// connection here; nothing that was written or had come before passes any more.
// Checked with bytes under way in both directions, somebody who waits to write, and
// somebody who does not let go.
func TestCut(t *testing.T) {
	t.Parallel()
	conn, other := pair(t)
	release := programs.Hold(t, conn.(syscall.Conn))
	wrote := make(chan error)
	go func() {
		_, err := conn.Write(make([]byte, 64<<20)) // more than both sockets hold
		wrote <- err
	}()
	programs.Got(other.Read(make([]byte, 1)))(t)
	programs.Got(other.Write([]byte("to be lost")))(t)
	if !socket.Cut(conn) {
		t.Fatal("it was not cut")
	}
	// What was under way is at most what the other socket held.
	buf := make([]byte, 1<<20)
	var err error
	for err == nil {
		_, err = other.Read(buf)
	}
	expect(t, err, "read", syscall.ECONNRESET)
	if n, err := conn.Read(buf); n > 0 || err == nil {
		t.Errorf("%d bytes are read after the cut, %v", n, err)
	}
	if err := <-wrote; err == nil {
		t.Error("a write was not ended")
	}
	if _, err := conn.Write([]byte("x")); err == nil {
		t.Error("something is written after the cut")
	}
	release()
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if socket.Cut(conn) {
		t.Error("what is closed was cut")
	}
}

// Checked: whoever waits to read is woken.
func TestCutWakesWhoReads(t *testing.T) {
	t.Parallel()
	conn, _ := pair(t)
	failed := make(chan error)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		failed <- err
	}()
	if !socket.Cut(conn) {
		t.Fatal("it was not cut")
	}
	if err := <-failed; err == nil {
		t.Error("the read gave something")
	}
}

// Checked: what is no TCP connection is left as it is.
func TestOthersAreNotCut(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if socket.Cut(a) {
		t.Error("a pipe was cut")
	}
}

package programs

import (
	"sync"
	"syscall"
	"testing"
)

// Hold has somebody use a connection's socket, which keeps it from being closed, until
// release or the end of the test.
func Hold(t testing.TB, conn syscall.Conn) (release func()) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	holds, let, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { ended <- raw.Control(func(uintptr) { close(holds); <-let }) }()
	select {
	case <-holds:
	case err := <-ended:
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		close(let)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(release)
	return release
}

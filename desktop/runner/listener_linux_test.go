package runner

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAgentThatStopsByItselfIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t, &memoryStore{})
	b.run(t)
	a := <-b.started
	<-b.clients
	loseListener(t, a.API())
	if err := <-b.result; err == nil || !strings.HasPrefix(err.Error(), "Porchlight stopped: the loopback API stopped") {
		t.Errorf("err = %v", err)
	}
}

// loseListener has the system take a listener of this process away.
func loseListener(t *testing.T, address string) {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	for fd := range 1 << 12 {
		listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
		if err != nil || listens == 0 {
			continue
		}
		if at, err := unix.Getsockname(fd); err == nil {
			if at, ok := at.(*unix.SockaddrInet4); ok && at.Port == port {
				if err := unix.Shutdown(fd, unix.SHUT_RDWR); err != nil {
					t.Fatal(err)
				}
				return
			}
		}
	}
	t.Fatalf("nothing listens at %s", address)
}

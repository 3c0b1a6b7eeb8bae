package runner

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"porchlight/test/programs"
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
	programs.Must(t, err)
	port := programs.Got(strconv.Atoi(text))(t)
	for fd := range 1 << 12 {
		listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
		if err != nil || listens == 0 {
			continue
		}
		if bound, err := unix.Getsockname(fd); err == nil {
			if bound, ok := bound.(*unix.SockaddrInet4); ok && bound.Port == port {
				programs.Must(t, unix.Shutdown(fd, unix.SHUT_RDWR))
				return
			}
		}
	}
	t.Fatalf("nothing listens at %s", address)
}

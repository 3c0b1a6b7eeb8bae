package programs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// lastPort is the last one that Port tried.
var lastPort atomic.Uint32

// Port is a port of this computer that nothing listens on now, at neither of its own
// addresses, and that is given to nobody else before giveBack: unless it is told
// otherwise the system chooses ports above these (net.ipv4.ip_local_port_range), for
// connections, too, and another process of ours does not get the UDP port of this number,
// which stands for it.
func Port() (port int, giveBack func(), err error) {
	const first, many = 12000, 20000
	lastPort.CompareAndSwap(0, 1+rand.Uint32N(many))
	for range many {
		port = first + int(lastPort.Add(1)%many)
		ours, err := net.ListenPacket("udp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if free("127.0.0.1", port) && (!hasIPv6() || free("::1", port)) {
			return port, func() { _ = ours.Close() }, nil
		}
		_ = ours.Close()
	}
	return 0, nil, errors.New("every port is taken")
}

// FreePort is a Port until the end of the test.
func FreePort(t testing.TB) int {
	t.Helper()
	port, giveBack, err := Port()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(giveBack)
	return port
}

func free(host string, port int) bool {
	// A program that starts meanwhile would hold the listener for longer than we do.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err == nil {
		_ = l.Close()
	}
	return err == nil
}

var hasIPv6 = sync.OnceValue(func() bool { return free("::1", 0) })

// FreeAddress is 127.0.0.1 with a FreePort.
func FreeAddress(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", FreePort(t))
}

// Serve answers at a FreeAddress, where nobody else listens once the server is closed:
// latest at the end of the test.
func Serve(t testing.TB, handler http.Handler) *httptest.Server {
	t.Helper()
	l, err := net.Listen("tcp", FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: handler}}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

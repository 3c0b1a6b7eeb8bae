package programs

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// lastPort is the last one that FreePort tried.
var lastPort atomic.Uint32

// FreePort is a port of this computer that nothing listens on now, at neither of its own
// addresses, and that is given to nobody else: unless it is told otherwise the system chooses ports above these
// (net.ipv4.ip_local_port_range), for connections, too, and another test process
// begins elsewhere.
func FreePort(t testing.TB) int {
	t.Helper()
	const first, many = 12000, 20000
	lastPort.CompareAndSwap(0, 1+rand.Uint32N(many))
	for range many {
		port := first + int(lastPort.Add(1)%many)
		if free("127.0.0.1", port) && (!hasIPv6() || free("::1", port)) {
			return port
		}
	}
	t.Fatal("every port is taken")
	return 0
}

func free(host string, port int) bool {
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

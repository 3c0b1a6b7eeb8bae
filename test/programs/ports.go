package programs

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
)

// lastPort is the last one that FreePort tried.
var lastPort atomic.Uint32

// FreePort is a port of this computer that nothing listens on now, and that is given
// to nobody else: unless it is told otherwise the system chooses ports above these
// (net.ipv4.ip_local_port_range), for connections, too, and another test process
// begins elsewhere.
func FreePort(t testing.TB) int {
	t.Helper()
	const first, many = 12000, 20000
	lastPort.CompareAndSwap(0, 1+rand.Uint32N(many))
	for range many {
		port := first + int(lastPort.Add(1)%many)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("every port is taken")
	return 0
}

// FreeAddress is 127.0.0.1 with a FreePort.
func FreeAddress(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", FreePort(t))
}

package agent

import (
	"net"
	"testing"

	"porchlight/agent/upstream"
)

// TestListens: whoever takes connections to 127.0.0.1 counts, and nobody else.
func TestListens(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::]:0"} {
		l, err := net.Listen("tcp", address)
		if address == "[::]:0" && upstream.Refused(err) {
			continue // a computer without IPv6
		}
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		if !listens(upstream.Target{Port: port}) {
			t.Errorf("%s listens, and is not seen", address)
		}
		l.Close()
		if listens(upstream.Target{Port: port}) {
			t.Errorf("%s is closed, and still seen", address)
		}
	}
}

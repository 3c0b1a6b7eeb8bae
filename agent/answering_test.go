package agent

import (
	"net"
	"strconv"
	"testing"

	"porchlight/agent/upstream"
	"porchlight/test/programs"
)

// TestListens: whoever takes connections to 127.0.0.1 counts, and nobody else.
func TestListens(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"127.0.0.1", "0.0.0.0", "::"} {
		port := programs.FreePort(t)
		address := net.JoinHostPort(host, strconv.Itoa(port))
		l, err := net.Listen("tcp", address)
		if host == "::" && upstream.Refused(err) {
			continue // a computer without IPv6
		}
		programs.Must(t, err)
		if !listens(upstream.Target{Port: port}) {
			t.Errorf("%s listens, and is not seen", address)
		}
		l.Close()
		if listens(upstream.Target{Port: port}) {
			t.Errorf("%s is closed, and still seen", address)
		}
	}
}

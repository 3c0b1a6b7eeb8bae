package tunnel_test

import (
	"crypto/tls"
	"net"
	"testing"

	"porchlight/control/relay"
	"porchlight/test/programs"
)

// visitFrom is visit from another loopback address.
func (w *world) visitFrom(source string) error {
	w.t.Helper()
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}, Timeout: wait}).Dial("tcp", w.addr)
	programs.Must(w.t, err)
	w.t.Cleanup(func() { _ = conn.Close() })
	return tls.Client(conn, visitorConfig("maya.localhost")).Handshake()
}

// Weakness: strangers from many addresses took every place of a computer, and
// those who are at home there found none. Checked: from where somebody was let in,
// visits come in at any time, also after the relay has started anew.
func TestPlacesAreKeptForThoseLetIn(t *testing.T) {
	t.Parallel()
	limits := func(c *relay.Config) { c.Limits.VisitorsPerComputer, c.Limits.VisitorsPerSource = 32, 8 }
	w := start(t, options{relay: limits, raw: func(conn net.Conn) {
		if conn.RemoteAddr().(*net.TCPAddr).IP.Equal(net.IPv4(127, 0, 0, 2)) {
			conn.(interface{ LetIn() }).LetIn()
		}
		secure := tls.Server(conn, &tls.Config{Certificates: issued("maya.localhost")})
		_ = secure.Handshake()
		_, _ = conn.Read(make([]byte, 1)) // until the visitor goes
	}})
	w.connected(true)
	programs.Must(t, w.visitFrom("127.0.0.2"))
	crowd := func() {
		t.Helper()
		for _, source := range []string{"127.0.0.10", "127.0.0.11", "127.0.0.12", "127.0.0.13", "127.0.0.14"} {
			for range 8 {
				_ = w.visitFrom(source)
			}
		}
		if w.visitFrom("127.0.0.3") == nil {
			t.Error("a stranger has a place that was kept")
		}
		for range 4 {
			if err := w.visitFrom("127.0.0.2"); err != nil {
				t.Errorf("from where somebody was let in: %v", err)
			}
		}
	}
	programs.Eventually(t, "a place is kept", func() bool { return w.relay.Stats().LetIn == 1 })
	crowd()
	w.stopRelay()
	w.connected(false)
	w.relay, _, w.stopRelay = startRelay(t, w.addr, nil, limits)
	w.tunnel.Wake()
	w.connected(true)
	programs.Eventually(t, "a place is kept again", func() bool { return w.relay.Stats().LetIn == 1 })
	crowd()
}

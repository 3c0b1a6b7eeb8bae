package proxy_test

import (
	"net"
	"sync/atomic"
	"testing"

	"porchlight/test/programs"
)

// fromTunnel is a listener whose visitors tell of being let in, as those of a
// tunnel do.
type fromTunnel struct {
	*streets
	letIn *atomic.Int32
}

type tunnelConn struct {
	net.Conn
	letIn *atomic.Int32
}

func (c tunnelConn) LetIn() { c.letIn.Add(1) }

func (l fromTunnel) Accept() (net.Conn, error) {
	conn, err := l.streets.Accept()
	return tunnelConn{conn, l.letIn}, err
}

// Weakness: the relay keeps places for those who were let in, and nobody told it.
// Checked: a connection whose visitor was let in tells so, once; one whose visitor
// was sent to sign in does not.
func TestTunnelLearnsWhoWasLetIn(t *testing.T) {
	t.Parallel()
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.app("notes", fine)
			s := &streets{t: t, conns: make(chan net.Conn), done: make(chan struct{})}
			var letIn atomic.Int32
			r.serve(fromTunnel{s, &letIn})
			stranger := r.browser(http2).at(s.from("203.0.113.9"), http2)
			if _, err := stranger.visit(); err == nil {
				t.Fatal("a stranger was let in")
			}
			if n := letIn.Load(); n != 0 {
				t.Errorf("the tunnel was told %d times of a stranger", n)
			}
			owner := r.signedIn("notes", ownerID, http2).at(s.from("203.0.113.7"), http2)
			for range 3 {
				programs.Got(owner.visit())(t)
			}
			if n := letIn.Load(); n != 1 {
				t.Errorf("the tunnel was told %d times of one connection", n)
			}
		})
	}
}

package agent

import (
	"errors"
	"net"
	"testing"
)

// lateListener calls accepted between taking a connection and handing it on.
type lateListener struct {
	net.Listener
	accepted func()
}

func (l lateListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	l.accepted()
	return c, err
}

// TestCallerBetweenTwoAgents: who is accepted at the very moment one agent ends is
// answered by the next one.
func TestCallerBetweenTwoAgents(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	late := &lateListener{Listener: ln}
	both := &lasting{Listener: late}
	defer both.shut()
	first := both.lease()
	late.accepted = func() { first.Close() }
	caller, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	for range 2 { // the second time it has ended already
		if c, err := first.Accept(); c != nil || !errors.Is(err, net.ErrClosed) {
			t.Fatalf("the first agent accepts %v, %v", c, err)
		}
	}
	ln.Close() // nobody else comes
	next, err := both.lease().Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if got, want := next.RemoteAddr().String(), caller.LocalAddr().String(); got != want {
		t.Errorf("the next agent accepts %s, want %s", got, want)
	}
}

package relay

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

// A visitor hears that the agent cut them off when the relay does, whatever else goes on
// here: thousands may be cut off together, and none waits for the goroutines of the others.
// Here somebody keeps the visitor's connection from being closed.
func TestVisitorsHearOfACutAtOnce(t *testing.T) {
	t.Parallel()
	visitor, visitorEnd := bulkPair(t)
	agent, agentEnd := bulkPair(t)
	ended := make(chan struct{})
	f := &flow{visitor: visitorEnd, agent: agentEnd, ended: func(_, _ int64) { close(ended) }}
	f.start()
	release := hold(t, visitorEnd)
	_ = agent.SetLinger(0)
	_ = agent.Close()
	_ = visitor.SetReadDeadline(time.Now().Add(10 * time.Second)) // which the test fails by
	if _, err := visitor.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the visitor is told %v", err)
	}
	release()
	<-ended
	for _, conn := range []*net.TCPConn{visitorEnd, agentEnd} {
		if err := conn.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the flow left a connection open: %v", err)
		}
	}
}

// hold keeps a connection from being closed until release.
func hold(t *testing.T, conn *net.TCPConn) (release func()) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	holds, let := make(chan struct{}), make(chan struct{})
	go raw.Control(func(uintptr) { close(holds); <-let })
	<-holds
	return func() { close(let) }
}

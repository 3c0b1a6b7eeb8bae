package relay

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"porchlight/test/programs"
)

// A visitor hears that the agent cut them off when the relay does, whatever else goes on
// here: thousands may be cut off together, and none waits for the goroutines of the others.
// Here somebody keeps the visitor's connection from being closed.
func TestVisitorsHearOfACutAtOnce(t *testing.T) {
	t.Parallel()
	visitor, visitorEnd := programs.Connected(t)
	agent, agentEnd := programs.Connected(t)
	ended := make(chan struct{})
	f := &flow{visitor: visitorEnd, agent: agentEnd, ended: func(_, _ int64) { close(ended) }}
	f.start()
	release := programs.Hold(t, visitorEnd)
	_ = agent.SetLinger(0)
	_ = agent.Close()
	_ = visitor.SetReadDeadline(time.Now().Add(longest))
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

package health_test

import (
	"net"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/test/programs"
)

// An app that is reached by TCP is never connected to, for nobody knows what it makes of that:
// only whether anybody listens is looked at.
func TestAppsReachedByTCPAreNotAsked(t *testing.T) {
	t.Parallel()
	h := build(t)
	l := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t).(*net.TCPListener)
	app := engine.App{ID: "id1", Name: "db", Status: agentapi.StatusLive, Live: true, TCP: true, Port: portOf(t, l)}
	h.change(func() { h.apps["id1"] = app })
	if got := h.Probe(t.Context(), "id1").Health; got != agentapi.HealthNothing {
		t.Errorf("while nobody listens it is %q", got)
	}
	h.change(func() { h.socket = 7 })
	h.later(time.Hour)
	if got := h.Probe(t.Context(), "id1").Health; got != agentapi.HealthAnswers {
		t.Errorf("while somebody listens it is %q", got)
	}
	programs.Must(t, l.SetDeadline(time.Now().Add(50*time.Millisecond)))
	if conn, err := l.Accept(); err == nil {
		t.Errorf("it was connected to, from %v", conn.RemoteAddr())
	}
}

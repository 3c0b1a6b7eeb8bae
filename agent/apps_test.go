package agent

import (
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
)

// Weakness: an app was approved on a port that a later start of Porchlight itself
// listens on, so that its visitors reach the loopback API, or go round for ever.
// Checked: to the proxy such an app is not live, whatever the engine says.
func TestPortThatBecameOursIsNotServed(t *testing.T) {
	t.Parallel()
	a := &Agent{ownPorts: []int{8765, 8443}}
	for port, live := range map[int]bool{8765: false, 8443: false, 8000: true} {
		if got := a.proxied(engine.App{ID: "id", Name: "notes", Port: port, Status: agentapi.StatusLive}); got.Live != live {
			t.Errorf("port %d: %+v", port, got)
		}
	}
	if a.proxied(engine.App{ID: "id", Name: "notes", Port: 8000, Status: agentapi.StatusPending}).Live {
		t.Error("a request is served")
	}
}

package proxy

import (
	"testing"
	"time"

	"porchlight/agent/agentapi"
)

// TestProofAfterAWarning: a browser that refused the certificate at first may show later
// that it trusts it, and then the time is told from the page to the proof, as always.
func TestProofAfterAWarning(t *testing.T) {
	t.Parallel()
	began := time.Now()
	c := &check{changed: make(chan struct{}), state: agentapi.TrustCheck{State: agentapi.CheckWaiting}}
	for _, state := range []string{agentapi.CheckRefused, agentapi.CheckOpened, agentapi.CheckProven} {
		c.become(state)
	}
	now, _ := c.look()
	if now.State != agentapi.CheckProven || now.Milliseconds < 1 || now.Milliseconds > 1+time.Since(began).Milliseconds() {
		t.Errorf("it stands as %+v", now)
	}
}

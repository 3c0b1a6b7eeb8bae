package agent

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/agent/remote"
)

// TestTroubleTakesAMoment: starting and roaming are no trouble; what lasts is.
func TestTroubleTakesAMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &Agent{cfg: Config{ControlPlane: &ControlPlane{Local: true}}, remote: remote.New(remote.Config{})} // not connected yet
		time.Sleep(troubleAfter - time.Nanosecond)
		if text := a.trouble().String(); text != "" {
			t.Errorf("while it settles: %s", text)
		}
		time.Sleep(time.Nanosecond)
		if text := a.trouble().String(); !strings.Contains(text, "does not answer") {
			t.Errorf("afterwards: %q", text)
		}
	})
}

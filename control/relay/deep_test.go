package relay

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"porchlight/control/controlapi/tunnelwire"
	"porchlight/test/programs"
)

// Attack: agents that stop in the middle of a frame, more than there are stacks that are kept.
// Checked: another one is answered meanwhile, and they are when they go on.
func TestAgentsThatStopHoldUpNobody(t *testing.T) {
	t.Parallel()
	_, addr := serveRelay(t, func(c *Config) { c.Limits.AdmitPerSecond, c.Limits.AdmitPerSecondPerSource = 1<<20, 1<<20 }, nil)
	var ping bytes.Buffer
	programs.Must(t, tunnelwire.WriteFrame(&ping, tunnelwire.Frame{Type: tunnelwire.Ping, Sent: 7}))
	answered := func(a *agent) {
		t.Helper()
		for f := range a.frames {
			if f.Type == tunnelwire.Pong && f.Sent == 7 {
				return
			}
		}
		t.Fatal("the connection ended without an answer")
	}
	slow := make([]*agent, 2*deepKept)
	for i := range slow {
		slow[i] = connectSleepingAgent(t, addr, fmt.Sprint("slow", i))
		programs.Got(slow[i].control.Write(ping.Bytes()[:9]))(t)
	}
	maya := connectSleepingAgent(t, addr, "maya")
	for range 2 * deepKept { // what they wrote has come by then
		programs.Got(maya.control.Write(ping.Bytes()))(t)
		answered(maya)
	}
	for _, a := range slow {
		programs.Got(a.control.Write(ping.Bytes()[9:]))(t)
		answered(a)
	}
}

// Checked: a fault while a frame is handled says where it is.
func TestAFaultOnADeepStackSaysWhere(t *testing.T) {
	t.Parallel()
	defer func() {
		if what := fmt.Sprint(recover()); !strings.Contains(what, "(*session).heed") {
			t.Errorf("it says only %q", what)
		}
	}()
	make(deepStacks, 1).heed(nil, true)
}

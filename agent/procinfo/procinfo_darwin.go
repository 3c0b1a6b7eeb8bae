package procinfo

import (
	"context"
	"os/exec"
	"strconv"
	"time"

	"porchlight/agent/agentapi"
)

// lsofTimeout bounds a call that a hanging network volume can stall.
const lsofTimeout = 3 * time.Second

// listening asks lsof, which every macOS has. It shows processes of the current
// user only, unless we are root.
func listening(port int) agentapi.Listener {
	ctx, cancel := context.WithTimeout(context.Background(), lsofTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "/usr/sbin/lsof", "-nP", "-w", "-iTCP:"+strconv.Itoa(port), "-sTCP:LISTEN", "-FpcLn").Output()
	if err != nil {
		return agentapi.Listener{} // exit 1: nobody found
	}
	return parseLsof(out, port)
}

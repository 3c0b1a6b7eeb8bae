package procinfo

import (
	"context"
	"net/netip"
	"os/exec"
	"strconv"
	"time"
)

// lsofTimeout bounds a call that a hanging network volume can stall.
const lsofTimeout = 3 * time.Second

func listenerSocket(address netip.AddrPort) Socket {
	return socketOf(parseLsof(lsof(int(address.Port()), "LISTEN"), address))
}

// callerSocket takes the end that dialled from both ends of the connection.
func callerSocket(from, to netip.AddrPort) Socket {
	return socketOf(parseLsofCaller(lsof(int(from.Port()), "ESTABLISHED"), from.String()+"->"+to.String()))
}

// lsof is on every macOS. It shows processes of the current user only, unless we
// are root, so another user's socket stays unknown.
func lsof(port int, state string) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), lsofTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "/usr/sbin/lsof", "-nP", "-w",
		"-iTCP:"+strconv.Itoa(port), "-sTCP:"+state, "-FpcuLtn").Output()
	if err != nil {
		return nil // exit 1: nobody found
	}
	return out
}

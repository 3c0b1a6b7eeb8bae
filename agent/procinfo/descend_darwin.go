package procinfo

import (
	"bytes"
	"context"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
)

// parents gives each process that runs its parent.
func parents() map[int]int {
	ctx, cancel := context.WithTimeout(context.Background(), lsofTimeout)
	defer cancel()
	found := map[int]int{}
	out, err := exec.CommandContext(ctx, "/bin/ps", "-axo", "pid=,ppid=").Output()
	if err != nil {
		return found
	}
	for line := range bytes.Lines(out) {
		fields := strings.Fields(string(line))
		if len(fields) != 2 {
			continue
		}
		pid, bad := strconv.Atoi(fields[0])
		parent, worse := strconv.Atoi(fields[1])
		if bad == nil && worse == nil {
			found[pid] = parent
		}
	}
	return found
}

func portsOf(pids []int) (ports []int) {
	if len(pids) == 0 {
		return nil
	}
	var list []string
	for _, pid := range pids {
		list = append(list, strconv.Itoa(pid))
	}
	ctx, cancel := context.WithTimeout(context.Background(), lsofTimeout)
	defer cancel()
	// -a: of these processes, and listening. It exits with 1 where one has nothing.
	out, _ := exec.CommandContext(ctx, "/usr/sbin/lsof", "-nP", "-w", "-a", "-p", strings.Join(list, ","),
		"-iTCP", "-sTCP:LISTEN", "-FpcuLtn").Output()
	for _, socket := range lsofSockets(out) {
		if at, ok := loopbackPort(socket.name); ok {
			ports = append(ports, at)
		}
	}
	return ports
}

// loopbackPort reads an address as lsof prints it: "127.0.0.1:80", "[::1]:80", "*:80".
func loopbackPort(name string) (port int, ok bool) {
	at := strings.Replace(name, "*:", "0.0.0.0:", 1)
	addr, err := netip.ParseAddrPort(at)
	if err != nil || !addr.Addr().IsLoopback() && !addr.Addr().IsUnspecified() {
		return 0, false
	}
	return int(addr.Port()), true
}

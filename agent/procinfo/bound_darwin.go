package procinfo

import (
	"context"
	"net/netip"
	"os/exec"
	"strings"
)

func allBound() (all []Bound) {
	ctx, cancel := context.WithTimeout(context.Background(), lsofTimeout)
	defer cancel()
	// It exits with 1 where a socket could not be read, and prints the others.
	out, _ := exec.CommandContext(ctx, "/usr/sbin/lsof", "-nP", "-w", "-iTCP", "-sTCP:LISTEN", "-FpcuLtn").Output()
	for process, socket := range lsofSockets(out) {
		if at, ok := socket.listens(); ok {
			all = append(all, Bound{at, socketOf(process)})
		}
	}
	return all
}

// listens reads an address as lsof prints it: "127.0.0.1:80", "[::1]:80", "*:80".
func (s lsofSocket) listens() (netip.AddrPort, bool) {
	any := "0.0.0.0:"
	if s.family == "IPv6" {
		any = "[::]:"
	}
	at, err := netip.ParseAddrPort(strings.Replace(s.name, "*:", any, 1))
	return unmapped(at), err == nil
}

//go:build linux || darwin

package containers

import (
	"net"
	"strconv"
	"syscall"

	"porchlight/agent/procinfo"
)

// peerUser is the user at the other end, by the system's own id; empty where that cannot be
// learnt.
func peerUser(conn net.Conn) string {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return ""
	}
	_, uid, err := procinfo.Peer(raw)
	if err != nil {
		return ""
	}
	return strconv.FormatUint(uint64(uid), 10)
}

//go:build linux || darwin

package localapi

import (
	"net"
	"os"

	"porchlight/agent/procinfo"
)

// ours says whether the process at the other end runs as this user.
func ours(c *net.UnixConn) bool {
	_, uid, err := procinfo.Peer(c)
	return err == nil && uid == uint32(os.Geteuid())
}

// peerPID is that process; 0 where it cannot be learnt.
func peerPID(c net.Conn) int {
	socket, ok := c.(*net.UnixConn)
	if !ok {
		return 0
	}
	pid, _, _ := procinfo.Peer(socket) // 0 with an error
	return pid
}

package localapi

import "net"

// peerPID is the process at the other end of a pipe, whose listener has asked.
func peerPID(c net.Conn) int {
	if pipe, ok := c.(interface{ PID() int }); ok {
		return pipe.PID()
	}
	return 0
}

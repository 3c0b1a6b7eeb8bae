//go:build linux || darwin

package procinfo

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Stands says whether a connection still has its two ends. Until it has not, no
// other connection has the same: who was found to be at its other end before is
// who is there. One that was broken off can be replaced by another program's.
func Stands(c net.Conn) bool {
	conn, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	stands := false
	err = raw.Control(func(fd uintptr) {
		_, err := unix.Getpeername(int(fd)) // fails for a connection that was reset
		stands = err == nil
	})
	return err == nil && stands
}

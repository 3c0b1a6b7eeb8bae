//go:build linux || darwin

package procinfo

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Stands says whether a connection still has its two ends. Until it has not, no
// other connection has the same: who was found to be at its other end before is
// who is there. One that was broken off can be replaced by another program's.
func Stands(c net.Conn) bool {
	conn, ok := c.(syscall.Conn)
	return ok && onDescriptor(conn, func(fd int) error {
		_, err := unix.Getpeername(fd) // fails for a connection that was reset
		return err
	}) == nil
}

// onDescriptor asks the system about what a connection is to it.
func onDescriptor(conn syscall.Conn, ask func(fd int) error) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	controlled := raw.Control(func(fd uintptr) { err = ask(int(fd)) })
	return errors.Join(controlled, err)
}

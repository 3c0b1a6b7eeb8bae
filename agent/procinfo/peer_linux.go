package procinfo

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Peer is the process and the user at the other end of a unix socket. The kernel noted
// them when it connected, or began to listen.
func Peer(conn syscall.Conn) (pid int, uid uint32, err error) {
	err = onDescriptor(conn, func(fd int) error {
		cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil {
			pid, uid = int(cred.Pid), cred.Uid
		}
		return err
	})
	return pid, uid, err
}

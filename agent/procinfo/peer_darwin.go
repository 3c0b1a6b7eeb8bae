package procinfo

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Peer is the process and the user at the other end of a unix socket. The kernel noted
// the user when it connected, or began to listen; the process is 0 where it is not told.
func Peer(conn syscall.Conn) (pid int, uid uint32, err error) {
	err = onDescriptor(conn, func(fd int) error {
		cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		if err == nil {
			uid = cred.Uid
			pid, _ = unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
		}
		return err
	})
	return pid, uid, err
}

package procinfo

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// Peer is the process and the user at the other end of a unix socket. The kernel noted
// the user when it connected, or began to listen; the process is 0 where it is not told.
func Peer(conn syscall.Conn) (pid int, uid uint32, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var cred *unix.Xucred
	controlled := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		pid, _ = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	})
	if err := errors.Join(controlled, err); err != nil {
		return 0, 0, err
	}
	return pid, cred.Uid, nil
}

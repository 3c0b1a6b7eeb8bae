package procinfo

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// Peer is the process and the user at the other end of a unix socket. The kernel noted
// them when it connected, or began to listen.
func Peer(conn syscall.Conn) (pid int, uid uint32, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var cred *unix.Ucred
	controlled := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(controlled, err); err != nil {
		return 0, 0, err
	}
	return int(cred.Pid), cred.Uid, nil
}

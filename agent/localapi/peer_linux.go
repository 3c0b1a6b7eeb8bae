package localapi

import (
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// ours says whether the process at the other end runs as this user. The kernel
// noted it when the process connected.
func ours(c *net.UnixConn) bool {
	cred, err := credentials(c)
	return err == nil && cred.Uid == uint32(os.Geteuid())
}

// peerPID is that process; 0 where it cannot be learnt.
func peerPID(c *net.UnixConn) int {
	cred, err := credentials(c)
	if err != nil {
		return 0
	}
	return int(cred.Pid)
}

func credentials(c *net.UnixConn) (cred *unix.Ucred, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	controlled := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return cred, errors.Join(controlled, err)
}

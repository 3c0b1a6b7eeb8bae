package localapi

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// ours says whether the process at the other end runs as this user. The kernel
// noted it when the process connected.
func ours(c *net.UnixConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	var cred *unix.Xucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	})
	return err == nil && credErr == nil && cred.Uid == uint32(os.Geteuid())
}

// peerPID is that process; 0 where it cannot be learnt.
func peerPID(c *net.UnixConn) (pid int) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	controlled := raw.Control(func(fd uintptr) {
		pid, err = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	})
	if controlled != nil || err != nil {
		return 0
	}
	return pid
}

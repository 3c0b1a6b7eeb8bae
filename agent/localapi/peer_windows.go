package localapi

import (
	"net"
	"unsafe"

	"golang.org/x/sys/windows"
)

// ours cannot tell here; the directory of the socket and the owner secret
// decide.
func ours(*net.UnixConn) bool { return true }

// sioGetPeerPID is SIO_AF_UNIX_GETPEERPID of afunix.h.
const sioGetPeerPID = 0x58000100

// peerPID is the process at the other end; 0 where it cannot be learnt.
func peerPID(c *net.UnixConn) int {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	var pid, size uint32
	controlled := raw.Control(func(fd uintptr) {
		err = windows.WSAIoctl(windows.Handle(fd), sioGetPeerPID, nil, 0, (*byte)(unsafe.Pointer(&pid)), 4, &size, nil, 0)
	})
	if controlled != nil || err != nil {
		return 0
	}
	return int(pid)
}

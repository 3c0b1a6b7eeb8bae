//go:build unix

package proxy

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// canDirect says whether quiet can tell on this system.
const canDirect = true

// quiet says whether an idle connection is still open and has nothing to read.
// Bytes that came unasked, such as a 408 before the server hangs up, would be
// taken for the answer to the next request.
func quiet(conn net.Conn) bool {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn() // an end of TLS is something to read, too
	}
	sys, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sys.SyscallConn()
	if err != nil {
		return false
	}
	var again bool
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		again = err == unix.EAGAIN || err == unix.EWOULDBLOCK || err == unix.EINTR
		return true // once is enough, do not wait
	})
	return err == nil && again
}

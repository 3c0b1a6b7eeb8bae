//go:build unix

package proxy

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// canDirect says whether quiet can tell on this system.
const canDirect = true

// quiet looks at an idle connection, again and again without an allocation.
type quiet struct {
	raw  syscall.RawConn // nil before the first look
	look func(fd uintptr) bool
	poll [1]unix.PollFd
	ok   bool // there is nothing to read, and nothing has ended
}

// is says whether an idle connection is still open and has nothing to read.
// Bytes that came unasked, such as a 408 before the server hangs up, would be
// taken for the answer to the next request.
func (q *quiet) is(conn net.Conn) bool {
	if q.raw == nil && !q.open(conn) {
		return false
	}
	q.ok = false
	return q.raw.Read(q.look) == nil && q.ok
}

func (q *quiet) open(conn net.Conn) bool {
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
	q.raw = raw
	q.look = func(fd uintptr) bool {
		q.poll[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
		n, err := unix.Poll(q.poll[:], 0)
		q.ok = n == 0 && err == nil
		return true // once is enough, do not wait
	}
	return true
}

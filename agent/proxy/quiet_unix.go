//go:build unix

package proxy

import (
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"porchlight/internal/socket"
)

// canDirect says whether quiet can tell on this system.
const canDirect = true

// quiet looks at an idle connection, and asks on it, again and again without an
// allocation.
//
// Bytes that came unasked, such as a 408 before the server hangs up, would be
// taken for the answer to the next request. So a connection is used that is open and
// has nothing to read.
type quiet struct {
	raw   syscall.RawConn // nil before the first look
	plain bool            // what is written to raw is what the app reads: there is no TLS
	look  func(fd uintptr) bool
	trade func(fd uintptr) bool

	ok           bool // there is nothing to read, and nothing has ended
	toSend, into []byte
	asked        int // bytes written
	n            int // bytes read
	err          error
}

// is says whether an idle connection is quiet.
func (q *quiet) is(conn net.Conn) bool {
	if q.raw == nil && !q.prepare(conn) {
		return false
	}
	q.ok = false
	return q.raw.Read(q.look) == nil && q.ok
}

// more says whether something to read has come on a connection that may trade.
func (q *quiet) more() bool {
	q.ok = true
	return q.raw.Read(q.look) == nil && !q.ok
}

// mayTrade says whether the connection can be asked by trading.
func (q *quiet) mayTrade(conn net.Conn) bool { return (q.raw != nil || q.prepare(conn)) && q.plain }

func (q *quiet) prepare(conn net.Conn) bool {
	q.plain = true
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn, q.plain = secure.NetConn(), false // an end of TLS is something to read, too
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
		q.see(fd)
		return true // once is enough, do not wait
	}
	q.trade = q.step
	return true
}

func (q *quiet) see(fd uintptr) {
	readable, err := socket.Readable(fd)
	q.ok = !readable && err == nil
}

// exchange asks, if the connection is quiet, and reads the beginning of the answer into
// a buffer: all in one wait for something to read. To try to read before the app can
// have answered, as a Write and a Read do, is a system call for nothing. asked is how
// much was written; less than all is no error, and then nothing was read.
func (q *quiet) exchange(request, into []byte) (asked, n int, err error) {
	q.toSend, q.into, q.asked, q.n, q.err = request, into, 0, 0, nil
	err = q.raw.Read(q.trade)
	q.toSend, q.into = nil, nil
	if err == nil {
		err = q.err
	}
	return q.asked, q.n, err
}

// step is called when the wait begins, before which nothing is missed that comes, and
// whenever there may be something to read. It is true when there is nothing to wait for.
func (q *quiet) step(fd uintptr) (done bool) {
	if q.asked == 0 {
		if q.see(fd); !q.ok {
			q.err = errNotQuiet
			return true
		}
		n, err := socket.Write(fd, q.toSend)
		if err != nil && err != unix.EAGAIN {
			q.err = errNotQuiet // it ended since the look
			return true
		}
		q.asked = max(n, 0)
		return q.asked < len(q.toSend)
	}
	switch n, err := socket.Read(fd, q.into); {
	case err == unix.EAGAIN:
		return false
	case err != nil:
		q.err = os.NewSyscallError("read", err)
	case n == 0:
		q.err = io.EOF
	default:
		q.n = n
	}
	return true
}

//go:build unix

package relay

import (
	"io"
	"net"
	"os"
	"syscall"

	"porchlight/internal/socket"
)

// patientReader reads from a connection and holds no buffer while it waits: one
// is taken from the pool only for the system call, and goes back when there was
// nothing to read.
type patientReader struct {
	raw syscall.RawConn
	try func(fd uintptr) bool // attempt, bound once so that reading allocates nothing

	buf *[copyBuffer]byte
	n   int
	err error
}

func newPatientReader(conn *net.TCPConn) reader {
	raw, err := conn.SyscallConn()
	if err != nil {
		return &holdingReader{conn} // whose read says why
	}
	r := &patientReader{raw: raw}
	r.try = r.attempt
	return r
}

// read waits for bytes.
func (r *patientReader) read() (buf *[copyBuffer]byte, n int, err error) {
	r.buf, r.n, r.err = nil, 0, nil
	if err := r.raw.Read(r.try); err != nil {
		return nil, 0, err
	}
	return r.buf, r.n, r.err
}

// attempt returns false to be called again when the connection is readable.
func (r *patientReader) attempt(fd uintptr) bool {
	buf := copyBuffers.Get().(*[copyBuffer]byte)
	n, err := socket.Read(fd, buf[:])
	if n > 0 {
		r.buf, r.n = buf, n
		return true
	}
	copyBuffers.Put(buf)
	switch {
	case err == syscall.EAGAIN:
		return false
	case err == nil:
		r.err = io.EOF
	default:
		r.err = os.NewSyscallError("read", err)
	}
	return true
}

// awaitReadable waits until there is something to read of conn, an end among it, or its
// time to read is over. It takes little stack, and nil is not waited for.
func awaitReadable(conn *net.TCPConn) {
	if conn == nil {
		return
	}
	if raw, err := conn.SyscallConn(); err == nil {
		_ = raw.Read(isReadable) // why it failed the read that follows says
	}
}

func isReadable(fd uintptr) bool {
	there, err := socket.Readable(fd)
	return there || err != nil
}

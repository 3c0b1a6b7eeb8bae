//go:build !unix

package relay

import "net"

// canSplice says whether the kernel can move bytes between two TCP connections.
const canSplice = false

// patientReader holds a buffer while it waits: waiting for readiness alone is
// not to be had here.
type patientReader struct{ conn *net.TCPConn }

func newPatientReader(conn *net.TCPConn) (*patientReader, error) {
	return &patientReader{conn}, nil
}

// read waits for bytes. With n above zero the buffer is the caller's, to be put
// back into copyBuffers.
func (r *patientReader) read() (*[copyBuffer]byte, int, error) {
	buf := copyBuffers.Get().(*[copyBuffer]byte)
	n, err := r.conn.Read(buf[:])
	if n == 0 {
		copyBuffers.Put(buf)
		return nil, 0, err
	}
	return buf, n, err
}

//go:build !unix

package relay

import "net"

// canSplice says whether the kernel can move bytes between two TCP connections.
const canSplice = false

// newPatientReader is not as patient here: waiting for readiness alone is not to
// be had.
func newPatientReader(conn *net.TCPConn) (reader, error) {
	return &holdingReader{conn}, nil
}

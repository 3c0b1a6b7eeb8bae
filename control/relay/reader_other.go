//go:build !unix

package relay

import "net"

// newPatientReader is not as patient here: waiting for readiness alone is not to
// be had.
func newPatientReader(conn *net.TCPConn) reader {
	return &holdingReader{conn}
}

// awaitReadable waits for nothing here: the read that follows does.
func awaitReadable(*net.TCPConn) {}

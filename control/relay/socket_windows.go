package relay

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// passes reports whether accepting failed for want of handles or memory, or for
// something that concerns one connection.
func passes(err error) bool {
	return errors.Is(err, windows.WSAEMFILE) || errors.Is(err, windows.WSAENOBUFS) || errors.Is(err, syscall.WSAECONNRESET)
}

// outOfFiles reports whether accepting failed for want of handles.
func outOfFiles(err error) bool { return errors.Is(err, windows.WSAEMFILE) }

// fileNumber is 0: handles are no numbers that count.
func fileNumber(net.Conn) int { return 0 }

// nothingCame reports whether conn is open with nothing to be read: what a parked
// data connection must be.
func nothingCame(conn *net.TCPConn) bool {
	if conn.SetReadDeadline(time.Now().Add(time.Millisecond)) != nil {
		return false
	}
	var buf [1]byte
	_, err := conn.Read(buf[:])
	return errors.Is(err, os.ErrDeadlineExceeded) && conn.SetReadDeadline(time.Time{}) == nil
}

package socket

import (
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Cut ends a TCP connection at once, where the system can (Linux), and says whether it
// did. When it returns, what was not sent yet is lost, what came and was not read is, too,
// the other side's system was told by a reset, and whoever reads or writes here fails.
// The connection is still to be closed.
//
// Closing alone waits for those who read: each has to wake and let go before the kernel
// hears that the connection is closed. Among thousands that are closed, that is behind
// everything the others do when they end.
func Cut(conn net.Conn) (done bool) {
	tcp, ok := conn.(interface {
		syscall.Conn
		SetLinger(sec int) error // which other sockets do not have
	})
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) {
		// Connected to no address, a socket is disconnected (connect(2)).
		none := unix.RawSockaddr{Family: unix.AF_UNSPEC}
		_, _, errno := syscall.RawSyscall(unix.SYS_CONNECT, fd, uintptr(unsafe.Pointer(&none)), unsafe.Sizeof(none))
		done = errno == 0
	})
	return err == nil && done
}

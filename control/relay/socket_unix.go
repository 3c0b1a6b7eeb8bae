//go:build unix

package relay

import (
	"errors"
	"net"
	"syscall"
)

// passes reports whether accepting failed for want of file descriptors or memory,
// or for something that concerns one connection or a state of the network (as
// accept(2) has it): none of it is the listener's end.
func passes(err error) bool {
	switch errno, _ := errors.AsType[syscall.Errno](err); errno {
	case syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
		syscall.ECONNABORTED, syscall.EPROTO, syscall.ENOPROTOOPT, syscall.EPERM, syscall.EACCES,
		syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EHOSTUNREACH, syscall.ETIMEDOUT:
		return true
	}
	return false
}

// outOfFiles reports whether accepting failed for want of file descriptors.
func outOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// fileNumber is conn's file descriptor, and 0 where it has none.
func fileNumber(conn net.Conn) (n int) {
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { n = int(fd) })
		}
	}
	return n
}

// nothingCame reports whether conn is open with nothing to be read: what a parked
// data connection must be. It does not block and takes no bytes.
func nothingCame(conn *net.TCPConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	var buf [1]byte
	var open bool
	err = raw.Control(func(fd uintptr) {
		for {
			_, _, err := syscall.Recvfrom(int(fd), buf[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			if err == syscall.EINTR {
				continue
			}
			open = err == syscall.EAGAIN
			return
		}
	})
	return err == nil && open
}

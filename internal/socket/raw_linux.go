//go:build linux && !race

package socket

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// read and write are system calls of which the scheduler is not told. The kernel has the
// address of p while the call lasts and not longer, which is what package unsafe allows.

func read(fd uintptr, p []byte) (int, error) {
	return call(unix.SYS_READ, fd, p)
}

func write(fd uintptr, p []byte) (int, error) {
	return call(unix.SYS_WRITE, fd, p)
}

func call(which, fd uintptr, p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, _, errno := syscall.RawSyscall(which, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// readable is poll for something to read, without waiting. The kernel writes into what
// says how long, but not where that is no time at all.
func readable(fd uintptr) (int, error) {
	polled := unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	n, _, errno := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&polled)), 1, uintptr(unsafe.Pointer(&noTime)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

var noTime unix.Timespec

//go:build unix

package socket

import "golang.org/x/sys/unix"

// Read reads what is there. The error is syscall.EAGAIN where that is nothing; n is 0
// without an error at the end of the stream.
func Read(fd uintptr, p []byte) (n int, err error) {
	return uninterrupted(func() (int, error) { return read(fd, p) })
}

// Write writes as much as there is room for: syscall.EAGAIN where that is nothing.
func Write(fd uintptr, p []byte) (n int, err error) {
	return uninterrupted(func() (int, error) { return write(fd, p) })
}

// Readable says whether there is something to read, or an end.
func Readable(fd uintptr) (bool, error) {
	n, err := uninterrupted(func() (int, error) { return readable(fd) })
	return n > 0, err
}

// uninterrupted makes a system call again that a signal ended before it did anything, of
// which Go's own scheduler sends many.
func uninterrupted(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); err != unix.EINTR {
			return n, err
		}
	}
}

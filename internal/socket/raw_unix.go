//go:build unix && (!linux || race)

package socket

import "golang.org/x/sys/unix"

func read(fd uintptr, p []byte) (int, error)  { return unix.Read(int(fd), p) }
func write(fd uintptr, p []byte) (int, error) { return unix.Write(int(fd), p) }

func readable(fd uintptr) (int, error) {
	polled := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	return unix.Poll(polled[:], 0)
}

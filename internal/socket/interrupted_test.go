//go:build unix

package socket

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A system call that a signal ended says nothing of the connection.
func TestInterruptedCallsAreMadeAgain(t *testing.T) {
	t.Parallel()
	calls := 0
	n, err := uninterrupted(func() (int, error) {
		if calls++; calls < 3 {
			return -1, unix.EINTR
		}
		return 7, unix.EAGAIN
	})
	if n != 7 || err != unix.EAGAIN || calls != 3 {
		t.Errorf("%d, %v after %d calls", n, err, calls)
	}
}

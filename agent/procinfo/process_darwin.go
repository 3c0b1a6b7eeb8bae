package procinfo

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sys/unix"
)

const maxPID = 1<<31 - 1

// insideID: this system has no namespaces of processes.
func insideID(pid int) int { return pid }

// open registers for NOTE_EXIT with a queue of its own: the kernel attaches it
// to the process, not to the id, and remembers that it came.
func open(pid int) (Handle, error) {
	kq, err := unix.Kqueue()
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(kq)
	change := unix.Kevent_t{Fflags: unix.NOTE_EXIT}
	unix.SetKevent(&change, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_CLEAR)
	if _, err := unix.Kevent(kq, []unix.Kevent_t{change}, nil, nil); err != nil {
		unix.Close(kq)
		if errors.Is(err, unix.ESRCH) {
			return nil, ErrGone
		}
		return nil, err
	}
	return &kqueue{fd: kq}, nil
}

type kqueue struct {
	mu     sync.Mutex
	fd     int
	exited bool
	closed bool
}

func (k *kqueue) Ended() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.exited {
		return true
	}
	events := make([]unix.Kevent_t, 1)
	n, err := unix.Kevent(k.fd, nil, events, &unix.Timespec{})
	k.exited = err == nil && n > 0
	return k.exited
}

func (k *kqueue) Wait(ctx context.Context) error { return waitLooking(ctx, k.Ended) }

func (k *kqueue) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		k.closed = true
		unix.Close(k.fd)
	}
}

package sleep

import (
	"context"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// clockSet is raised whenever the system's clock jumps, as it does when the computer
// wakes up: the kernel tells, so nobody has to look again and again. It is nil where the
// kernel does not.
func clockSet(ctx context.Context) <-chan struct{} {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil
	}
	file := os.NewFile(uintptr(fd), "timer") // waits without a thread
	// It never ends by itself, only when the clock is set.
	never := unix.ItimerSpec{Value: unix.NsecToTimespec(math.MaxInt64)}
	set := func() bool {
		return unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &never, nil) == nil
	}
	if !set() || file.SetReadDeadline(time.Time{}) != nil {
		_ = file.Close()
		return nil
	}
	out := make(chan struct{}, 1)
	stop := context.AfterFunc(ctx, func() { _ = file.SetReadDeadline(time.Unix(1, 0)) })
	go func() {
		defer file.Close()
		defer stop()
		for buf := make([]byte, 8); ; {
			_, _ = file.Read(buf) // ECANCELED: the clock was set
			if ctx.Err() != nil {
				return
			}
			select {
			case out <- struct{}{}:
			default:
			}
			if !set() {
				return
			}
		}
	}()
	return out
}

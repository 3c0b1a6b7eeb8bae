package relay

import (
	"context"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A dead peer is noticed after userTimeout when bytes are under way to it, and
// after keepIdle + keepCount·keepEvery when none are.
const (
	keepIdle    = 15 * time.Second
	keepEvery   = 10 * time.Second
	keepCount   = 3
	userTimeout = 30 * time.Second
	// deferAccept is how long the kernel keeps a connection to itself that has
	// said nothing yet.
	deferAccept = 3 * time.Second
)

// Listen opens a TCP listener for Serve on addr ("host:port"). Its socket
// options are set on the listener once, where the kernel hands them on to every
// connection accepted, instead of on each.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	config := net.ListenConfig{
		KeepAlive: -1, // or each connection is given the options once more
		Control: func(_, _ string, raw syscall.RawConn) error {
			return tuneSocket(raw, true)
		},
	}
	return config.Listen(ctx, "tcp", addr)
}

// tuneListener gives a listener that Listen has not made the same options, as far as it is TCP.
func tuneListener(l net.Listener) {
	if tcp, ok := l.(*net.TCPListener); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			_ = tuneSocket(raw, false)
		}
	}
}

func tuneSocket(raw syscall.RawConn, patient bool) error {
	var failed error
	set := func(fd uintptr, level, option, value int) {
		if err := unix.SetsockoptInt(int(fd), level, option, value); err != nil && failed == nil {
			failed = err
		}
	}
	err := raw.Control(func(fd uintptr) {
		set(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
		set(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, int(keepIdle/time.Second))
		set(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, int(keepEvery/time.Second))
		set(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepCount)
		set(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout/time.Millisecond))
		if patient {
			set(fd, unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, int(deferAccept/time.Second))
		}
	})
	if err != nil {
		return err
	}
	return failed
}

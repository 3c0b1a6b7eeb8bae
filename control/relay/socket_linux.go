package relay

import (
	"context"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A dead peer is noticed after userTimeout. The kernel counts towards it the time
// in which a peer that lives takes nothing (a paused download), and lets it
// overrule keepCount, so it has to be longer than people pause.
const (
	keepIdle    = 15 * time.Second
	keepEvery   = 10 * time.Second
	keepCount   = 3
	userTimeout = 5 * time.Minute
	// deferAccept is how long the kernel keeps a connection to itself that has
	// said nothing yet.
	deferAccept = 3 * time.Second
)

// Listen opens a TCP listener for Serve on addr ("host:port"). Its socket
// options are set on the listener once, where the kernel hands them on to every
// connection accepted, instead of on each.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	config := net.ListenConfig{KeepAlive: -1} // or each connection is given the options once more
	// Multipath connections neither inherit the options nor can be spliced.
	config.SetMultipathTCP(false)
	tuned := config
	tuned.Control = func(_, _ string, raw syscall.RawConn) error { return tuneSocket(raw, true) }
	if l, err := tuned.Listen(ctx, "tcp", addr); err == nil {
		return tunedListener{l}, nil
	}
	// A system that lacks one of the options has each connection given those it knows.
	return config.Listen(ctx, "tcp", addr)
}

// tunedListener marks what Listen has made.
type tunedListener struct{ net.Listener }

// tuner returns what is to be done to each connection accepted from l.
func tuner(l net.Listener) func(net.Conn) {
	if _, ok := l.(tunedListener); ok {
		return func(net.Conn) {}
	}
	return func(conn net.Conn) {
		if tcp, ok := conn.(*net.TCPConn); ok {
			if raw, err := tcp.SyscallConn(); err == nil {
				_ = tuneSocket(raw, false) // without them, a dead peer is only noticed later
			}
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

package relay

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"porchlight/test/programs"
)

// On a listener of ours the options are set once; this holds the kernel to
// handing them on. On one that Serve was given each connection gets them.
func TestAcceptedConnectionsAreWatched(t *testing.T) {
	t.Parallel()
	own := programs.Got(Listen(t.Context(), "127.0.0.1:0"))(t)
	given := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	for name, l := range map[string]net.Listener{"own": own, "given": given} {
		defer l.Close()
		client := dial(t, l.Addr().String())
		programs.Got(client.Write([]byte("x")))(t)
		conn := programs.Got(l.Accept())(t)
		defer conn.Close()
		tuner(l)(conn)
		raw := programs.Got(conn.(*net.TCPConn).SyscallConn())(t)
		_ = raw.Control(func(fd uintptr) {
			for _, option := range []struct {
				name              string
				level, opt, least int
				most              int
			}{
				{"keepalive", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1, 1},
				{"keepalive idle, s", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 1, int(keepIdle / time.Second)},
				{"user timeout, ms", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 1, int(userTimeout / time.Millisecond)},
				{"no delay", unix.IPPROTO_TCP, unix.TCP_NODELAY, 1, 1},
			} {
				got, err := unix.GetsockoptInt(int(fd), option.level, option.opt)
				if err != nil || got < option.least || got > option.most {
					t.Errorf("%s listener: %s is %d, %v", name, option.name, got, err)
				}
			}
		})
	}
}

package tunnel

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// tune makes the loss of the network known while bytes are under way. The kernel
// counts the time in which a visitor who lives reads nothing, so it has to be
// longer than people pause.
func tune(conn *net.TCPConn) {
	const userTimeout = 5 * time.Minute
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	// A kernel without the option only takes longer to notice.
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout/time.Millisecond))
	})
}

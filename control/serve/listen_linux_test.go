package serve

import (
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"porchlight/control"
	"porchlight/test/programs"
)

// TestListenerHandsItsOptionsOn: a node listens by relay.Listen, so that the kernel
// gives every connection the options of a visitor's, and nobody has to set them on each.
func TestListenerHandsItsOptionsOn(t *testing.T) {
	t.Parallel()
	n, err := Open(t.Context(), Config{DataDir: t.TempDir(), Naming: control.Naming{Domain: "porch.test"}, Listen: []string{"127.0.0.1:0"}})
	programs.Must(t, err)
	defer n.Close()
	visitor := programs.Got(net.Dial("tcp", n.listeners[0].Addr().String()))(t)
	defer visitor.Close()
	// One that says nothing the kernel keeps to itself for a while.
	programs.Got(visitor.Write([]byte("x")))(t)
	conn := programs.Got(n.listeners[0].Accept())(t)
	defer conn.Close()
	raw := programs.Got(conn.(syscall.Conn).SyscallConn())(t)
	err = raw.Control(func(fd uintptr) {
		if ms, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); err != nil || ms == 0 {
			t.Errorf("a connection comes without its user timeout: %d ms, %v", ms, err)
		}
	})
	programs.Must(t, err)
}

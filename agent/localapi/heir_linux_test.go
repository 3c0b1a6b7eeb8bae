package localapi

import (
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"porchlight/agent/procinfo"
	"porchlight/test/programs"
)

// Weakness S1: who sent a request was asked of the system by two addresses.
// Attack: send it, break the connection off, and have another user's program
// connect from the same port before the agent asks.
// Checked: the first connection is nobody's, the second one its maker's.
func TestS1TheNextConnectionIsAnothers(t *testing.T) {
	t.Parallel()
	ln := programs.Got(net.Listen("tcp4", "127.0.0.1:0"))(t)
	defer ln.Close()
	entry := (&Server{userOf: procinfo.CallerUser}).newEntry(ln)
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
	connect := func() (*net.TCPConn, *called) {
		t.Helper()
		dialer := net.Dialer{LocalAddr: from, Control: func(_, _ string, c syscall.RawConn) (err error) {
			if outer := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) }); outer != nil {
				return outer
			}
			return err
		}}
		out := programs.Got(dialer.Dial("tcp4", ln.Addr().String()))(t)
		t.Cleanup(func() { out.Close() })
		in := programs.Got(entry.Accept())(t)
		t.Cleanup(func() { in.Close() })
		return out.(*net.TCPConn), in.(*called)
	}
	out, first := connect()
	programs.Got(out.Write([]byte("POST ")))(t)
	from = out.LocalAddr().(*net.TCPAddr)
	programs.Must(t, out.SetLinger(0))
	out.Close()
	_, second := connect()
	if n, err := first.Read(make([]byte, 5)); n != 5 || err != nil {
		t.Fatalf("what was sent before is gone: %d, %v; then there is nothing to attack with", n, err)
	}
	if found := procinfo.CallerUser(ends(first)); found.UserID == "" {
		t.Error("the system names nobody at these addresses: then there is nothing to defend")
	}
	if got := first.user(); got != (procinfo.Process{}) {
		t.Errorf("the broken connection is taken for one of %+v", got)
	}
	if got := second.user(); got.UserID == "" {
		t.Error("the second one is nobody's")
	}
}

package procinfo_test

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"porchlight/agent/procinfo"
	"porchlight/test/programs"
)

// Every listener is there with its address, its user and its process, and one that has
// closed is not.
func TestAllBound(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs a system whose tables the tests were written for")
	}
	for network, host := range map[string]string{"tcp4": "127.0.0.1", "tcp6": "::1", "tcp": ""} {
		ln := programs.Got(net.Listen(network, net.JoinHostPort(host, strconv.Itoa(programs.FreePort(t)))))(t)
		at := ln.Addr().(*net.TCPAddr).AddrPort()
		one, ok := boundAt(at.Port())
		if !ok || one.UserID == "" || one.Inode == 0 || one.Find().PID != os.Getpid() {
			t.Errorf("%s: %+v, %v", at, one, ok)
		}
		if one.At.Addr() != at.Addr().Unmap() {
			t.Errorf("%s is told as %s", at, one.At)
		}
		syscall.ForkLock.RLock() // a program of another test that starts would hold it for a moment
		ln.Close()
		syscall.ForkLock.RUnlock()
		if one, ok := boundAt(at.Port()); ok {
			t.Errorf("closed, and still there: %+v", one)
		}
	}
}

func boundAt(port uint16) (procinfo.Bound, bool) {
	for _, b := range procinfo.AllBound() {
		if b.At.Port() == port {
			return b, true
		}
	}
	return procinfo.Bound{}, false
}

func TestReaches(t *testing.T) {
	t.Parallel()
	for at, want := range map[string][2]int{
		"127.0.0.1:80": {3, 0}, "[::1]:80": {0, 3}, "0.0.0.0:80": {2, 0}, "[::]:80": {1, 1},
		"127.0.0.53:80": {0, 0}, "192.0.2.1:80": {0, 0}, "[2001:db8::1]:80": {0, 0},
	} {
		b := procinfo.Bound{At: netip.MustParseAddrPort(at)}
		if got := [2]int{b.Reaches(procinfo.IPv4), b.Reaches(procinfo.IPv6)}; got != want {
			t.Errorf("%s: %v, want %v", at, got, want)
		}
	}
}

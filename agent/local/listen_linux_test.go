package local

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"porchlight/test/programs"
)

// TestHalfADrawnPortIsNotKept: the system draws a port of which somebody has the other
// half. The next start draws anew, and that port is kept.
func TestHalfADrawnPortIsNotKept(t *testing.T) {
	t.Parallel()
	if !inNetworkOfItsOwn(t) {
		return
	}
	half, err := net.Listen("tcp", "[::1]:40001")
	if err != nil {
		t.Skipf("IPv6 is switched off: %v", err)
	}
	defer half.Close()
	draw := func(port string) {
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte(port+" "+port), 0); err != nil {
			t.Skipf("which port is drawn cannot be said here: %v", err)
		}
	}
	dir := t.TempDir()
	draw("40001")
	listeners, _, err := listen(dir, "127.0.0.1:0")
	closeAll(listeners)
	if err == nil || !strings.HasPrefix(err.Error(), "[::1]:40001 is taken by ") {
		t.Errorf("half of 40001 is somebody's: %v", err)
	}
	for _, next := range []string{"40002", "40003"} {
		draw(next)
		listeners, port, err := listen(dir, "127.0.0.1:0")
		closeAll(listeners)
		if err != nil || port != 40002 || len(listeners) != 2 {
			t.Errorf("with %s to be drawn: port %d, %d listeners, %v", next, port, len(listeners), err)
		}
	}
}

// inNetworkOfItsOwn has the test run by another process, in a network with nothing but
// this computer in it. It is true in that process.
func inNetworkOfItsOwn(t *testing.T) bool {
	t.Helper()
	const variable = "PORCHLIGHT_TEST_NETWORK"
	if os.Getenv(variable) == t.Name() {
		programs.Must(t, loopbackUp())
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), variable+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, syscall.EPERM), strings.Contains(string(out), "--- SKIP"):
		t.Skipf("no such network here: %v\n%s", err, out)
	case err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

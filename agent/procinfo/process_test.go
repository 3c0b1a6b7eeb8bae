package procinfo

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"porchlight/test/programs"
	"porchlight/test/sleeper"
)

// child starts a process that stays until it is killed.
func child(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := sleeper.Command()
	programs.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// TestWait: the end of a process is noticed, as a zombie already, and nothing is
// noticed before.
func TestWait(t *testing.T) {
	t.Parallel()
	cmd := child(t)
	h := programs.Got(Open(cmd.Process.Pid))(t)
	defer h.Close()
	if h.Ended() {
		t.Error("a process that has just begun has ended")
	}
	ended := make(chan error, 1)
	go func() { ended <- h.Wait(t.Context()) }()
	programs.Must(t, cmd.Process.Kill())
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the end of a process was not noticed")
	}
	if _, err := Open(cmd.Process.Pid); !errors.Is(err, ErrGone) {
		t.Errorf("a zombie: %v", err)
	}
	_ = cmd.Wait()
	if _, err := Open(cmd.Process.Pid); !errors.Is(err, ErrGone) {
		t.Errorf("a process that is gone: %v", err)
	}
}

// TestWaitGivesUp: the context ends the waiting, whichever way it is done.
func TestWaitGivesUp(t *testing.T) {
	t.Parallel()
	h := programs.Got(Open(child(t).Process.Pid))(t)
	defer h.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Wait(ctx) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Wait: %v", err)
	}
	if err := waitLooking(ctx, func() bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("waitLooking: %v", err)
	}
}

func TestOpenNobody(t *testing.T) {
	t.Parallel()
	for _, pid := range []int{-1, 0, 1 << 22, 1<<31 - 1, 1 << 40} {
		if _, err := Open(pid); err == nil {
			t.Errorf("there is a process %d", pid)
		}
	}
}

// TestCaller looks for the client's end of connections of this process,
// over each kind of address.
func TestCaller(t *testing.T) {
	t.Parallel()
	exe := programs.Got(os.Executable())(t)
	want := strings.TrimSuffix(filepath.Base(exe), ".exe")
	for _, c := range []struct{ listen, network, dial string }{
		{"127.0.0.1:0", "tcp4", "127.0.0.1"},
		{"[::1]:0", "tcp6", "::1"},
		{"[::]:0", "tcp4", "127.0.0.1"}, // IPv4 inside IPv6
	} {
		t.Run(c.listen, func(t *testing.T) {
			ln := listen(t, "tcp", c.listen)
			_, port, err := net.SplitHostPort(ln.Addr().String())
			programs.Must(t, err)
			client := programs.Got(net.Dial(c.network, net.JoinHostPort(c.dial, port)))(t)
			defer client.Close()
			server := programs.Got(ln.Accept())(t)
			defer server.Close()
			from, to := server.RemoteAddr().(*net.TCPAddr).AddrPort(), server.LocalAddr().(*net.TCPAddr).AddrPort()
			for what, hint := range map[string]int{"without a hint": 0, "with the right one": os.Getpid(), "with a wrong one": 1, "with one that nobody has": 1 << 40} {
				got := CallerSocket(from, to).Find(hint)
				if got.PID != os.Getpid() || strings.TrimSuffix(got.Program, ".exe") != want || got.User == "" {
					t.Errorf("%s: %+v, want pid %d, program %q and a user", what, got, os.Getpid(), want)
				}
			}
			if got := CallerSocket(netip.AddrPortFrom(from.Addr(), 1), to).Find(0); got != (Process{}) {
				t.Errorf("another connection: %+v", got)
			}
		})
	}
	if got := CallerSocket(netip.AddrPort{}, netip.AddrPort{}).Find(1); got != (Process{}) {
		t.Errorf("no connection: %+v", got)
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	if !Calls(os.Getpid(), os.Getpid()) || Calls(os.Getpid(), os.Getppid()) || Calls(0, 0) {
		t.Error("a process is called by its own id and no other")
	}
}

func TestParseLsofCaller(t *testing.T) {
	t.Parallel()
	const both = "p812\ncpython3\nLada\nf3\nn127.0.0.1:50000->127.0.0.1:8765\np9\ncporchlight\nLada\nf20\nn127.0.0.1:8765->127.0.0.1:50000\n"
	if got, want := parseLsofCaller([]byte(both), "127.0.0.1:50000->127.0.0.1:8765"), (Process{PID: 812, Program: "python3", User: "ada"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, out := range []string{"", "n127.0.0.1:50000->127.0.0.1:8765\n", "pabc\nn127.0.0.1:50000->127.0.0.1:8765\n"} {
		if got := parseLsofCaller([]byte(out), "127.0.0.1:50000->127.0.0.1:8765"); got != (Process{}) {
			t.Errorf("%q: %+v", out, got)
		}
	}
}

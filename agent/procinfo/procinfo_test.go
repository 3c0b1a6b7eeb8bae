package procinfo

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/internal/words"
	"porchlight/test/programs"
)

// TestListening looks for a listener of this process, on each kind of
// address that takes connections to 127.0.0.1.
func TestListening(t *testing.T) {
	t.Parallel()
	exe := programs.Got(os.Executable())(t)
	want := strings.TrimSuffix(filepath.Base(exe), ".exe")
	for _, c := range []struct{ network, address string }{
		{"tcp4", "127.0.0.1:0"},
		{"tcp4", "0.0.0.0:0"},
		{"tcp", "[::]:0"}, // which takes both families
	} {
		t.Run(c.address, func(t *testing.T) {
			ln := listen(t, c.network, c.address)
			got := Listening(ln.Addr().(*net.TCPAddr).Port)
			if got.PID != os.Getpid() || strings.TrimSuffix(got.Program, ".exe") != want || got.User == "" {
				t.Errorf("Listening = %+v, want pid %d, program %q and a user", got, os.Getpid(), want)
			}
		})
	}
}

// TestCannotListen names who has an address that somebody else wants, in the owner's
// language.
func TestCannotListen(t *testing.T) {
	t.Parallel()
	said := func(err error) string { return words.German.Tell(words.InWords(err)) }
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(address, func(t *testing.T) {
			at := listen(t, "tcp", address).Addr().String()
			_, err := net.Listen("tcp", at)
			err = CannotListen(err, at, "--api")
			if got, want := err.Error(), fmt.Sprintf(" (process %d). Stop it, or choose another port with --api", os.Getpid()); !strings.HasPrefix(got, at+" is taken by ") || !strings.HasSuffix(got, want) {
				t.Errorf("%s: %s", at, got)
			}
			if got, want := said(err), fmt.Sprintf(" (Prozess %d). Beenden Sie es, oder wählen Sie mit --api einen anderen Port", os.Getpid()); !strings.HasPrefix(got, "an "+at+" läuft schon ") || !strings.HasSuffix(got, want) {
				t.Errorf("%s: %s", at, got)
			}
		})
	}
	for _, address := range []string{"", "127.0.0.1", "localhost:80", "192.0.2.1:80"} {
		err := CannotListen(syscall.EADDRINUSE, address, "--https")
		if got := err.Error(); got != address+" is taken by another program. Stop it, or choose another port with --https" {
			t.Errorf("%q: %s", address, got)
		}
		if got := said(err); got != "an "+address+" läuft schon ein anderes Programm. Beenden Sie es, oder wählen Sie mit --https einen anderen Port" {
			t.Errorf("%q: %s", address, got)
		}
	}
	if err := CannotListen(syscall.EACCES, "127.0.0.1:80", "--https"); !errors.Is(err, syscall.EACCES) || err.Error() != "cannot listen on 127.0.0.1:80: permission denied" {
		t.Errorf("a port that is forbidden: %v", err)
	}
}

// listen is a listener until the test ends. A machine whose IPv6 is switched off
// has no such address, and no listener to be found there.
func listen(t *testing.T, network, address string) net.Listener {
	t.Helper()
	ln, err := net.Listen(network, address)
	if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
		t.Skipf("IPv6 is switched off: %v", err)
	}
	programs.Must(t, err)
	t.Cleanup(func() { ln.Close() })
	return ln
}

// TestNobodyListens wants no process where none accepts, a connection in use
// from that port included.
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	ln := programs.Got(net.Listen("tcp4", "127.0.0.1:0"))(t)
	defer ln.Close()
	client := programs.Got(net.Dial("tcp4", ln.Addr().String()))(t)
	defer client.Close()
	if got := Listening(client.LocalAddr().(*net.TCPAddr).Port); got != (agentapi.Listener{}) {
		t.Errorf("the port of a client is reported as listened on by %+v", got)
	}
	for _, port := range []int{-1, 0, 65536, 1 << 30} {
		if got := Listening(port); got != (agentapi.Listener{}) {
			t.Errorf("Listening(%d) = %+v", port, got)
		}
	}
}

// lsofSays is who listens on port 8080 of an address, as lsof says it.
func lsofSays(says string, at netip.Addr) Process {
	return parseLsof([]byte(says), netip.AddrPortFrom(at, 8080))
}

func TestParseLsof(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, out string
		want      Process
	}{
		{"nobody", "", Process{}},
		{"one", "p812\ncpython3\nLada\nf3\nn127.0.0.1:8080\n", Process{PID: 812, Program: "python3", User: "ada"}},
		{"with the user's number", "p812\ncpython3\nu501\nLada\nf3\nn127.0.0.1:8080\n", Process{PID: 812, Program: "python3", User: "ada", UserID: "501"}},
		{"a number that is none", "p812\ncpython3\nu5x\nLada\nf3\nn127.0.0.1:8080\n", Process{PID: 812, Program: "python3", User: "ada"}},
		{"a user without a name", "p812\ncpython3\nu501\nf3\nn127.0.0.1:8080\n", Process{PID: 812, Program: "python3", UserID: "501"}},
		{"wildcard", "p9\ncnode\nLada\nf20\nn*:8080\n", Process{PID: 9, Program: "node", User: "ada"}},
		{
			"the exact address wins", "p9\ncnode\nLada\nf20\nn*:8080\np10\ncruby\nLbob\nf5\nn127.0.0.1:8080\n",
			Process{PID: 10, Program: "ruby", User: "bob"},
		},
		{"another address", "p9\ncnode\nLada\nf20\nn192.168.1.4:8080\n", Process{}},
		{"another port", "p9\ncnode\nLada\nf20\nn127.0.0.1:18080\n", Process{}},
		{"a socket before any process", "n127.0.0.1:8080\n", Process{}},
		{"a pid that is none", "pabc\ncnode\nn127.0.0.1:8080\n", Process{}},
	} {
		if got := lsofSays(c.out, IPv4); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestParseLsofOfIPv6: [::1] is reached there, at [::], and not at 0.0.0.0.
func TestParseLsofOfIPv6(t *testing.T) {
	t.Parallel()
	const node = "p9\ncnode\nu501\nLada\nf20\n"
	for out, found := range map[string]bool{
		node + "tIPv6\nn[::1]:8080\n":     true,
		node + "tIPv6\nn*:8080\n":         true,
		node + "tIPv4\nn*:8080\n":         false,
		node + "tIPv4\nn127.0.0.1:8080\n": false,
		node + "tIPv6\nn[::1]:18080\n":    false,
		node + "tIPv6\nn[fe80::1]:8080\n": false,
	} {
		if got := lsofSays(out, IPv6); (got.PID == 9) != found {
			t.Errorf("%q: %+v", out, got)
		}
		both := strings.Contains(out, "*") || strings.Contains(out, "127")
		if got := lsofSays(out, IPv4); (got.PID == 9) != both {
			t.Errorf("%q, asked for IPv4: %+v", out, got)
		}
	}
}

// TestListenerOfEachFamily: of two programs on one port each is found at its own
// address, and one that takes both is found at both.
func TestListenerOfEachFamily(t *testing.T) {
	t.Parallel()
	port := programs.FreePort(t) // which nobody has at the other address
	listen(t, "tcp6", net.JoinHostPort("::1", strconv.Itoa(port)))
	if got := ListenerSocket(IPv6, port); got.UserID == "" {
		t.Errorf("nobody is seen on [::1]: %+v", got)
	}
	if got := ListenerSocket(IPv4, port); got != (Socket{}) {
		t.Errorf("a listener on [::1] is seen on 127.0.0.1: %+v", got)
	}
	both := listen(t, "tcp", "[::]:0")
	port = both.Addr().(*net.TCPAddr).Port
	if a, b := ListenerSocket(IPv4, port), ListenerSocket(IPv6, port); a.UserID == "" || a != b {
		t.Errorf("one listener of both families is %+v and %+v", a, b)
	}
}

func FuzzParseLsof(f *testing.F) {
	f.Add([]byte("p812\ncpython3\nu501\nLada\nf3\nn127.0.0.1:8080\n"))
	f.Add([]byte("p-1\nn*:8080\n"))
	f.Add([]byte("\n\np\nc\nL\nn"))
	f.Fuzz(func(t *testing.T, out []byte) {
		if got := lsofSays(string(out), IPv4); got != (Process{}) && got.PID < 1 {
			t.Errorf("a process without a pid: %+v", got)
		}
	})
}

// BenchmarkListening is what asking again about a known socket costs.
func BenchmarkListening(b *testing.B) {
	ln := programs.Got(net.Listen("tcp4", "127.0.0.1:0"))(b)
	defer ln.Close()
	port := ln.Addr().(*net.TCPAddr).Port
	for b.Loop() {
		if Listening(port).PID == 0 {
			b.Fatal("nobody listens")
		}
	}
}

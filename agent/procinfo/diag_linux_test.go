package procinfo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"porchlight/test/programs"
)

// stranger is the environment of a process that has a socket for a test: what to
// do and with which address.
const stranger = "PROCINFO_TEST_STRANGER"

const nobody = 65534

func TestMain(m *testing.M) {
	if what, address, ok := strings.Cut(os.Getenv(stranger), " "); ok {
		if err := beStranger(what, address); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// sharing listens with everything set that lets sockets share a port.
var sharing = net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
	if outer := c.Control(func(fd uintptr) {
		err = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
	}); outer != nil {
		return outer
	}
	return err
}}

// beStranger tells the address of its socket, and keeps it until its input ends.
func beStranger(what, address string) error {
	var at net.Addr
	switch what {
	case "listen":
		ln, err := sharing.Listen(context.Background(), "tcp", address)
		if err != nil {
			return err
		}
		defer ln.Close()
		at = ln.Addr()
	case "dial":
		c, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		defer c.Close()
		at = c.LocalAddr()
	}
	fmt.Println(at)
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// another runs a stranger until the test ends, and returns its socket's address.
func another(t *testing.T, attr *syscall.SysProcAttr, what, address string) (netip.AddrPort, int) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe") // which another user may run wherever it is
	cmd.Env = append(os.Environ(), stranger+"="+what+" "+address)
	cmd.SysProcAttr = attr
	in := programs.Got(cmd.StdinPipe())(t)
	out := programs.Got(cmd.StdoutPipe())(t)
	if err := cmd.Start(); errors.Is(err, syscall.EPERM) {
		t.Skipf("we may not start such a process: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	line, _ := bufio.NewReader(out).ReadString('\n')
	at, err := netip.ParseAddrPort(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("%s %s: %q", what, address, line)
	}
	return at, cmd.Process.Pid
}

// needsAnswers skips the test on a kernel that was built without the answer about one
// socket, or that keeps it from us. What else fails is our own mistake.
func needsAnswers(t *testing.T) {
	t.Helper()
	ln := listen(t, "tcp4", "127.0.0.1:0")
	switch _, err := diag.ask(ln.Addr().(*net.TCPAddr).AddrPort(), netip.AddrPort{}); {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EPROTONOSUPPORT), errors.Is(err, unix.EACCES):
		t.Skipf("this kernel does not answer about one socket: %v", err)
	case err != nil:
		t.Fatal(err)
	}
}

func asNobody(t *testing.T) *syscall.SysProcAttr {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can start another user's process")
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}

// TestAnotherUsersListener: the user of a port is the one who made the socket, on
// each kind of address that takes connections to 127.0.0.1, by both ways.
func TestAnotherUsersListener(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::]:0"} {
		t.Run(address, func(t *testing.T) {
			at, pid := another(t, asNobody(t), "listen", address)
			port := int(at.Port())
			if got := ListenerSocket(IPv4, port); got.UserID != "65534" || got.User != "nobody" && got.User != "65534" {
				t.Errorf("ListenerUser = %+v", got)
			}
			if got := listenerInTables(netip.AddrPortFrom(IPv4, uint16(port))); got.uid != nobody || got.inode != ListenerSocket(IPv4, port).Inode {
				t.Errorf("the tables say %+v, the kernel %+v", got, ListenerSocket(IPv4, port))
			}
			if got := Listening(port); got.PID != pid {
				t.Errorf("Listening = %+v, want process %d", got, pid)
			}
		})
	}
}

// TestAnotherUsersCall is the same for who calls.
func TestAnotherUsersCall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ listen, dial string }{{"127.0.0.1:0", "127.0.0.1"}, {"[::1]:0", "::1"}, {"[::]:0", "127.0.0.1"}} {
		t.Run(c.listen, func(t *testing.T) {
			attr := asNobody(t)
			ln := listen(t, "tcp", c.listen)
			from, pid := another(t, attr, "dial", net.JoinHostPort(c.dial, strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)))
			server := programs.Got(ln.Accept())(t)
			defer server.Close()
			to := server.LocalAddr().(*net.TCPAddr).AddrPort()
			if got := CallerUser(server.RemoteAddr().(*net.TCPAddr).AddrPort(), to); got.UserID != "65534" || got.PID != 0 {
				t.Errorf("CallerUser = %+v", got)
			}
			if got := connectionInTables(from, unmapped(to)); got.uid != nobody || got.inode != CallerSocket(from, to).Inode {
				t.Errorf("the tables say %+v, the kernel %+v", got, CallerSocket(from, to))
			}
			if got := CallerSocket(from, to).Find(pid); got.PID != pid {
				t.Errorf("Caller = %+v, want process %d", got, pid)
			}
			if got := CallerUser(to, from); got.UserID != "0" {
				t.Errorf("our own end is of %+v", got)
			}
		})
	}
}

// TestListenerElsewhere: a listener in another network namespace (a container)
// is unknown, and is not taken for the one here that has its number.
func TestListenerElsewhere(t *testing.T) {
	t.Parallel()
	attr := asNobody(t)
	attr.Cloneflags = unix.CLONE_NEWNET
	ln := listen(t, "tcp4", "127.0.0.1:0")
	port := ln.Addr().(*net.TCPAddr).Port
	another(t, attr, "listen", netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(port)).String())
	if got := ListenerSocket(IPv4, port); got.UserID != "0" {
		t.Errorf("ours is of %+v", got)
	}
	ln.Close()
	if got := ListenerSocket(IPv4, port); got.UserID == "65534" {
		t.Errorf("the one elsewhere is told: %+v", got)
	}
}

// TestOrphanIsNobodys. Weakness: the kernel writes root as the user of a socket
// whose process has closed it. Attack: a stranger sends a request and closes at
// once. Checked: the caller is unknown then, never root; one who is only done
// with sending is known still.
func TestOrphanIsNobodys(t *testing.T) {
	t.Parallel()
	ln := listen(t, "tcp4", "127.0.0.1:0")
	client := programs.Got(net.Dial("tcp4", ln.Addr().String()))(t)
	defer client.Close()
	server := programs.Got(ln.Accept())(t)
	defer server.Close()
	from, to := client.LocalAddr().(*net.TCPAddr).AddrPort(), ln.Addr().(*net.TCPAddr).AddrPort()
	before := CallerSocket(from, to)
	if before.Inode == 0 {
		t.Fatal("the caller is unknown")
	}
	programs.Must(t, client.(*net.TCPConn).CloseWrite())
	if got := CallerSocket(from, to); got != before {
		t.Errorf("done with sending: %+v, before %+v", got, before)
	}
	if got := connectionInTables(from, to); got.inode != before.Inode {
		t.Errorf("done with sending, the tables say %+v", got)
	}
	client.Close()
	if got := CallerSocket(from, to); got != (Socket{}) {
		t.Errorf("closed: %+v", got)
	}
	if got := connectionInTables(from, to); got != (socket{}) {
		t.Errorf("closed, the tables say %+v", got)
	}
}

// TestListenerOfAnInterface: what is bound to the loopback interface takes the
// connections to 127.0.0.1, what is bound to another does not.
func TestListenerOfAnInterface(t *testing.T) {
	t.Parallel()
	bound := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if outer := c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), "lo") }); outer != nil {
			return outer
		}
		return err
	}}
	ln, err := bound.Listen(t.Context(), "tcp4", "0.0.0.0:0")
	if errors.Is(err, unix.EPERM) {
		t.Skipf("we may not bind to an interface: %v", err)
	}
	programs.Must(t, err)
	defer ln.Close()
	if got := ListenerSocket(IPv4, ln.Addr().(*net.TCPAddr).Port); got.Inode == 0 {
		t.Errorf("a listener bound to the loopback interface is unknown")
	}
}

// TestOtherListeners take no connection to 127.0.0.1.
func TestOtherListeners(t *testing.T) {
	t.Parallel()
	for network, host := range map[string]string{"tcp4": "127.0.0.2", "tcp6": "::1"} {
		port := programs.FreePort(t) // which nobody has at the other address
		listen(t, network, net.JoinHostPort(host, strconv.Itoa(port)))
		if got := ListenerSocket(IPv4, port); got != (Socket{}) {
			t.Errorf("%s: %+v", host, got)
		}
	}
}

// TestPortOfTwo says what holds about two users at one port of the two addresses
// that reach it: whoever comes second cannot listen.
func TestPortOfTwo(t *testing.T) {
	t.Parallel()
	attr := asNobody(t)
	for first, second := range map[string]string{"127.0.0.1": "0.0.0.0", "0.0.0.0": "127.0.0.1"} {
		at, _ := another(t, attr, "listen", first+":0")
		ln, err := sharing.Listen(t.Context(), "tcp4", netip.AddrPortFrom(netip.MustParseAddr(second), at.Port()).String())
		if !errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("%s after another user's %s: %v", second, first, err)
		}
		if ln != nil {
			ln.Close()
		}
	}
}

// TestOneQuestion: one question to the kernel and one answer, and none of its
// tables, however many sockets there are: with many of them no more memory is
// used than with few. It runs alone, for the memory is the whole process's.
func TestOneQuestion(t *testing.T) {
	needsAnswers(t)
	ln := listen(t, "tcp4", "127.0.0.1:0")
	port := ln.Addr().(*net.TCPAddr).Port
	manySockets(t, 2000)
	free := listen(t, "tcp4", "127.0.0.1:0")
	free.Close()
	for what, ask := range map[string]func() Socket{
		"a listener":     func() Socket { return ListenerSocket(IPv4, port) },
		"a port of none": func() Socket { return ListenerSocket(IPv4, free.Addr().(*net.TCPAddr).Port) },
		"a caller's port": func() Socket {
			return CallerSocket(free.Addr().(*net.TCPAddr).AddrPort(), ln.Addr().(*net.TCPAddr).AddrPort())
		},
	} {
		ask() // learns the user's name, and that the kernel answers
		var before, after runtime.MemStats
		asked := diag.seq
		runtime.ReadMemStats(&before)
		ask()
		runtime.ReadMemStats(&after)
		if n := diag.seq - asked; n != 1 {
			t.Errorf("%s: %d questions", what, n)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<10 {
			t.Errorf("%s took %d bytes: a table of all sockets was read", what, used)
		}
	}
}

// manySockets makes that many connections nobody accepts, each of two sockets
// and one file.
func manySockets(tb testing.TB, n int) {
	tb.Helper()
	var at string
	for i := range n / 2 {
		if i%4000 == 0 { // as many as a listener keeps waiting
			ln := programs.Got(net.Listen("tcp4", "127.0.0.1:0"))(tb)
			tb.Cleanup(func() { ln.Close() })
			at = ln.Addr().String()
		}
		c, err := net.Dial("tcp4", at)
		if err != nil {
			tb.Skipf("%d sockets are too many here: %v", n, err)
		}
		tb.Cleanup(func() { c.(*net.TCPConn).SetLinger(0); c.Close() })
	}
}

// BenchmarkListenerUser is on the way of requests. Its cost does not grow with the
// sockets of the computer.
func BenchmarkListenerUser(b *testing.B) {
	ln := programs.Got(net.Listen("tcp4", "127.0.0.1:0"))(b)
	defer ln.Close()
	port := ln.Addr().(*net.TCPAddr).Port
	for _, n := range []int{0, 36_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			manySockets(b, n)
			for b.Loop() {
				if ListenerSocket(IPv4, port).UserID == "" {
					b.Fatal("nobody listens")
				}
			}
		})
	}
}

// TestAnswerOfAnother: what answers another question, or names another socket,
// is not taken.
func TestAnswerOfAnother(t *testing.T) {
	t.Parallel()
	needsAnswers(t)
	ln := listen(t, "tcp4", "127.0.0.1:0")
	local := ln.Addr().(*net.TCPAddr).AddrPort()
	var d diagnoser
	defer func() { unix.Close(d.fd) }()
	good, err := d.exchange(local, netip.AddrPort{})
	programs.Must(t, err)
	client := programs.Got(net.Dial("tcp4", ln.Addr().String()))(t)
	defer client.Close()
	from := client.LocalAddr().(*net.TCPAddr).AddrPort()
	anothers := func(said []byte, local, remote netip.AddrPort) bool {
		_, err := parseDiag(said, local, remote)
		if err != nil && !errors.Is(err, errOther) {
			t.Errorf("it cannot be read: %v", err)
		}
		return err != nil
	}
	if anothers(good, local, netip.AddrPort{}) {
		t.Error("the answer is not taken")
	}
	if _, err := checkReply(good, d.seq+1); !errors.Is(err, errOther) {
		t.Errorf("an answer to another question: %v", err)
	}
	// The bytes of the message that are compared: state, ports, addresses, inode.
	for _, at := range []int{1, 4, 6, 8, 24, 68} {
		bad := append([]byte(nil), good...)
		if at == 68 {
			copy(bad[header+68:], make([]byte, 4))
		} else {
			bad[header+at] ^= 0x55
		}
		if !anothers(bad, local, netip.AddrPort{}) {
			t.Errorf("taken with byte %d changed", at)
		}
	}
	if !anothers(good[:answer-1], local, netip.AddrPort{}) {
		t.Error("taken though it is cut short")
	}
	if !anothers(good, local, netip.AddrPortFrom(IPv4, 1)) {
		t.Error("a listener is taken for a connection")
	}
	if good, err = d.exchange(from, local); err != nil {
		t.Fatal(err)
	}
	for state, taken := range map[byte]bool{1: true, 2: false, 3: false, 5: true, 6: false, 7: false, 8: true, 10: false, 12: false, 255: false} {
		good[header+1] = state
		if anothers(good, from, local) == taken {
			t.Errorf("a connection in state %d: taken is to be %v", state, taken)
		}
	}
}

func FuzzDiagReply(f *testing.F) {
	f.Add(make([]byte, answer))
	f.Add([]byte{})
	local, remote := netip.MustParseAddrPort("127.0.0.1:50000"), netip.MustParseAddrPort("127.0.0.1:8765")
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, remote := range []netip.AddrPort{remote, {}} {
			reply, err := checkReply(raw, 1)
			if err != nil {
				return
			}
			if got, err := parseDiag(reply, local, remote); err == nil && got.inode == 0 {
				t.Errorf("a socket that no process has: %+v", got)
			}
		}
	})
}

// A listener on [::] that takes no IPv4 counts for [::1] alone, which only the kernel
// says: its tables show the same line for one that takes both.
func TestListenerOfIPv6Alone(t *testing.T) {
	t.Parallel()
	needsAnswers(t)
	port := programs.FreePort(t)
	listen(t, "tcp6", net.JoinHostPort("::", strconv.Itoa(port))) // which Go has take IPv6 alone
	if got := ListenerSocket(IPv6, port); got.UserID == "" {
		t.Errorf("nobody is seen on [::1]: %+v", got)
	}
	if got := ListenerSocket(IPv4, port); got != (Socket{}) {
		t.Errorf("it is seen on 127.0.0.1: %+v", got)
	}
	if got := listenerInTables(netip.AddrPortFrom(IPv4, uint16(port))); got == (socket{}) {
		t.Error("the tables tell them apart by now: rank can, too")
	}
}

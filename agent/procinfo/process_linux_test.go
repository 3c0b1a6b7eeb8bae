package procinfo

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"porchlight/test/programs"
	"porchlight/test/sleeper"
)

func TestFindConnection(t *testing.T) {
	t.Parallel()
	const row = "   1: 0100007F:C350 0100007F:223D 01 00000000:00000000 00:00000000 00000000  1000        0 77 1\n"
	const other = "   2: 0100007F:223D 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1001        0 78 1\n"
	from, to := netip.MustParseAddrPort("127.0.0.1:50000"), netip.MustParseAddrPort("127.0.0.1:8765")
	for _, c := range []struct {
		name, table string
		inode       uint64
	}{
		{"nobody", tableHead, 0},
		{"the end that dialled", tableHead + other + row, 77},
		{"IPv4 in IPv6", tableHead + "   1: 0000000000000000FFFF00000100007F:C350 0000000000000000FFFF00000100007F:223D 01 0:0 0:0 0 1000 0 79 1\n", 79},
		{"done with sending", tableHead + "   1: 0100007F:C350 0100007F:223D 05 0:0 0:0 0 1000 0 80 1\n", 80},
		{"another connection", tableHead + other, 0},
		{"only beginning", tableHead + "   1: 0100007F:C350 0100007F:223D 02 0:0 0:0 0 1000 0 80 1\n", 0},
		{"closed", tableHead + "   1: 0100007F:C350 0100007F:223D 06 0:0 0:0 0 1000 0 77 1\n", 0},
		{"no process any more", tableHead + "   1: 0100007F:C350 0100007F:223D 01 0:0 0:0 0 1000 0 0 1\n", 0},
		{"cut short", tableHead + "   1: 0100007F:C350 0100007F:223D 01", 0},
		{"no user", tableHead + "   1: 0100007F:C350 0100007F:223D 01 0:0 0:0 0 -1 0 77 1\n", 0},
		{"odd addresses", tableHead + "   1: 0100:C350 zz:223D 01 0:0 0:0 0 1000 0 77 1\n", 0},
	} {
		if got := findConnection([]byte(native(c.table)), from, to); got.inode != c.inode {
			t.Errorf("%s: found %+v, want inode %d", c.name, got, c.inode)
		}
	}
}

var word = regexp.MustCompile("[0-9A-F]{8}")

// native is what the kernel of this machine prints where that of a little-endian
// one prints table: addresses are words in the machine's order of bytes.
func native(table string) string {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return table
	}
	return word.ReplaceAllStringFunc(table, func(w string) string { return w[6:] + w[4:6] + w[2:4] + w[:2] })
}

func FuzzFindConnection(f *testing.F) {
	f.Add([]byte(tableHead + "   1: 0100007F:C350 0100007F:223D 01 0:0 0:0 0 1000 0 77 1\n"))
	f.Add([]byte("a 0100007:C350 :223D 01 e f g h i j"))
	from, to := netip.MustParseAddrPort("127.0.0.1:50000"), netip.MustParseAddrPort("127.0.0.1:8765")
	f.Fuzz(func(t *testing.T, table []byte) {
		if got := findConnection(table, from, to); got.inode == 0 && got.uid != 0 {
			t.Errorf("a user without a socket: %+v", got)
		}
	})
}

func TestBirthOf(t *testing.T) {
	t.Parallel()
	const rest = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21\n"
	for stat, want := range map[string]string{
		"9 (sleep)" + rest:                               "4711",
		"9 (a) R 1 (b)" + rest:                           "4711",
		"9 (sleep) Z 1 2 3 4 5 6 7 8 9 10 11 12 13 4711": "",
		"9 (sleep) S 1":                                  "",
		"9 sleep":                                        "",
		"":                                               "",
	} {
		if got, ok := birthOf([]byte(stat)); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", stat, got, ok)
		}
	}
}

func FuzzBirthOf(f *testing.F) {
	f.Add([]byte("9 (sleep) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21\n"))
	f.Add([]byte(") Z"))
	f.Fuzz(func(t *testing.T, stat []byte) {
		if birth, ok := birthOf(stat); ok != (birth != "") {
			t.Errorf("%q, %v", birth, ok)
		}
	})
}

// TestBirthday is the way without a pidfd.
func TestBirthday(t *testing.T) {
	t.Parallel()
	born, ok := born(os.Getpid())
	if !ok {
		t.Fatal("this process was not born")
	}
	if bornAt(os.Getpid(), born).Ended() {
		t.Error("this process has ended")
	}
	if !bornAt(os.Getpid(), "1").Ended() {
		t.Error("another process with this id is taken for the same")
	}
	cmd := child(t)
	h, ok := birthOfChild(cmd.Process.Pid)
	if !ok {
		t.Fatal("the child was not born")
	}
	programs.Must(t, cmd.Process.Kill())
	if err := h.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

func bornAt(pid int, birth string) Handle { return birthday{pid, birth} }

func birthOfChild(pid int) (Handle, bool) {
	birth, ok := born(pid)
	return bornAt(pid, birth), ok
}

// TestInsideID: in a namespace of its own a process has another id.
func TestInsideID(t *testing.T) {
	t.Parallel()
	if got := insideID(os.Getpid()); got != os.Getpid() {
		t.Errorf("this process is %d to itself, and %d in its own namespace", os.Getpid(), got)
	}
	if got := insideID(1 << 30); got != 0 {
		t.Errorf("a process that does not exist is %d inside", got)
	}
}

// TestCallsInASandbox: a process in a namespace of its own calls itself by
// another id than we do.
func TestCallsInASandbox(t *testing.T) {
	t.Parallel()
	cmd := sleeper.Command()
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER // in which anybody may
	}
	err := cmd.Start()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		t.Skipf("this kernel lets nobody like us make namespaces: %v", err)
	}
	programs.Must(t, err)
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if pid := cmd.Process.Pid; !Calls(pid, 1) || !Calls(pid, pid) || Calls(pid, 2) {
		t.Errorf("process %d calls itself %d", pid, insideID(pid))
	}
}

// TestHostileProgramName. Weakness: the name of a program is shown to the owner,
// and whoever runs it chooses the name. Attack: line breaks, an escape sequence,
// a character that turns text around, parentheses that end the name in /proc, and
// bytes that are no text. Checked: what is told is one printable line, and the
// process is still the one that is watched.
func TestHostileProgramName(t *testing.T) {
	t.Parallel()
	sleep := programs.Got(exec.LookPath("sleep"))(t)
	for name, want := range map[string]string{
		"a) S 1 2\n\x1b[31mb":                "a) S 1 2??[31mb",
		"\u202esetoN (deleted)x":             "?setoN (deleted)x",
		"\xff\xfe notes":                     "?? notes",
		strings.Repeat("long ", 40) + "name": strings.Repeat("long ", 20) + "…",
	} {
		path := filepath.Join(t.TempDir(), name)
		// By cp, so that no program started meanwhile holds the file open to write.
		programs.Must(t, exec.Command("cp", sleep, path).Run())
		cmd := exec.Command(path, "60")
		cmd.Args[0] = "sleep" // what a program of many names goes by
		programs.Must(t, cmd.Start())
		h := programs.Got(Open(cmd.Process.Pid))(t)
		if told := shown(program(cmd.Process.Pid)); told != want {
			t.Errorf("%q is told as %q, want %q", name, told, want)
		}
		if birth, ok := born(cmd.Process.Pid); !ok || birth == "" {
			t.Errorf("%q: nothing is known of its birth", name)
		}
		if h.Ended() {
			t.Errorf("%q has ended", name)
		}
		cmd.Process.Kill()
		if err := h.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		h.Close()
		cmd.Wait()
	}
}

package procinfo

import (
	"cmp"
	"encoding/binary"
	"net"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"porchlight/test/programs"
)

// header and answer are the sizes of a message of netlink about nothing, and about a socket.
const (
	header = unix.SizeofNlMsghdr
	answer = header + 72 // inet_diag_msg
)

// The list that the kernel gives has what its tables have, however many messages it takes.
func TestListIsTheTables(t *testing.T) {
	needsAnswers(t)
	ports := map[uint16]bool{}
	for range 300 {
		ln := programs.Got(net.Listen("tcp4", "127.0.0.1:0"))(t)
		t.Cleanup(func() { ln.Close() })
		ports[ln.Addr().(*net.TCPAddr).AddrPort().Port()] = true
	}
	ours := func(all []Bound) []Bound { // other tests listen meanwhile
		all = slices.DeleteFunc(all, func(b Bound) bool { return !ports[b.At.Port()] })
		slices.SortFunc(all, func(a, b Bound) int { return cmp.Compare(a.At.Port(), b.At.Port()) })
		return all
	}
	list := ours(programs.Got(listeners(unix.AF_INET))(t))
	if tables := ours(boundInTables()); len(list) != len(ports) || !slices.Equal(list, tables) {
		t.Errorf("%d in the list, %d in the tables, of %d", len(list), len(tables), len(ports))
	}
}

// An answer that is cut, changed while it was made, or about something else is none.
func TestListThatIsNone(t *testing.T) {
	t.Parallel()
	message := func(kind, flags uint16, length int) []byte {
		m := make([]byte, length)
		binary.NativeEndian.PutUint32(m, uint32(length))
		binary.NativeEndian.PutUint16(m[4:], kind)
		binary.NativeEndian.PutUint16(m[6:], flags)
		return m
	}
	for what, raw := range map[string][]byte{
		"an error":       message(unix.NLMSG_ERROR, 0, header+4),
		"too short":      message(unix.SOCK_DIAG_BY_FAMILY, 0, answer-1),
		"cut":            message(unix.SOCK_DIAG_BY_FAMILY, 0, answer)[:answer-4],
		"changed":        message(unix.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP_INTR, answer),
		"without length": make([]byte, answer),
	} {
		if all, _, err := readDump(raw); err == nil || all != nil {
			t.Errorf("%s: %v, %v", what, all, err)
		}
	}
	if _, done, err := readDump(message(unix.NLMSG_DONE, 0, header+4)); !done || err != nil {
		t.Errorf("the end: %v, %v", done, err)
	}
}

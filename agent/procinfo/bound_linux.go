package procinfo

import (
	"bytes"
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// diagDump is what one message of a list of sockets may take; the kernel's are a page.
const diagDump = 16 << 10

var listens = []byte(" " + stateListen + " ")

// allBound asks for the listeners alone. The tables would have the kernel walk over room
// for every connection, some milliseconds, each time the agent looks.
func allBound() []Bound {
	var all []Bound
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		some, err := listeners(family)
		if err != nil {
			return boundInTables()
		}
		all = append(all, some...)
	}
	if len(all) == 0 && !answers() {
		return boundInTables()
	}
	return all
}

// listeners are those of one family, by one request (NETLINK_SOCK_DIAG, a dump).
func listeners(family byte) (all []Bound, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	m := make([]byte, diagRequest)
	binary.NativeEndian.PutUint32(m, diagRequest)
	binary.NativeEndian.PutUint16(m[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	m[diagHeader], m[diagHeader+1] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(m[diagHeader+4:], 1<<tcpListen)
	if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	buffer := make([]byte, diagDump)
	for {
		// The kernel goes on with the list while it is read: nothing is waited for.
		n, _, flags, from, err := unix.Recvmsg(fd, buffer, nil, unix.MSG_DONTWAIT)
		if err != nil {
			return nil, err
		}
		if kernel, ok := from.(*unix.SockaddrNetlink); !ok || kernel.Pid != 0 || flags&unix.MSG_TRUNC != 0 {
			return nil, errOther
		}
		some, done, err := readDump(buffer[:n])
		if all = append(all, some...); done || err != nil {
			return all, err
		}
	}
}

// readDump reads the messages of one answer. done is the end of the list.
func readDump(raw []byte) (all []Bound, done bool, err error) {
	for len(raw) >= diagHeader {
		length := int(binary.NativeEndian.Uint32(raw))
		if length < diagHeader || length > len(raw) || binary.NativeEndian.Uint16(raw[6:])&unix.NLM_F_DUMP_INTR != 0 {
			return nil, false, errOther
		}
		switch binary.NativeEndian.Uint16(raw[4:]) {
		case unix.NLMSG_DONE:
			return all, true, nil
		case unix.SOCK_DIAG_BY_FAMILY:
			if length < diagReply {
				return nil, false, errOther
			}
			family, state, id, s := diagMessage(raw[diagHeader:])
			if at := diagAddress(family, id[4:20], id); state == tcpListen && s.inode != 0 && at.IsValid() {
				all = append(all, Bound{at, described(s)})
			}
		default:
			return nil, false, errOther
		}
		raw = raw[min((length+3)&^3, len(raw)):]
	}
	return all, false, nil
}

// boundInTables is for a kernel that gives no list: see socketAt.
func boundInTables() (all []Bound) {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		raw, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(raw) {
			if !bytes.Contains(line, listens) {
				continue // of a busy computer most lines are connections
			}
			if r, ok := readRow(line); ok && r.state == stateListen {
				if address := tableAddress(r.local); address.IsValid() {
					all = append(all, Bound{address, described(r.socket)})
				}
			}
		}
	}
	return all
}

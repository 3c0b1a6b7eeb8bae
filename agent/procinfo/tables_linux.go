package procinfo

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// States of a socket as /proc/net/tcp prints them.
const (
	stateListen     = "0A"
	statesConnected = "01 04 05 08 09 0B" // see tcpConnected
)

// socket is one socket as the kernel tells it; zero when it tells none.
type socket struct {
	inode uint64
	uid   uint32
}

// socketAt is the socket whose own end is local and whose other one is remote,
// which is zero for a listener. Where the kernel does not answer about one socket
// (a sandbox, an old kernel) its tables are read, which takes a tenth of a second
// on a computer with tens of thousands of connections.
func socketAt(local, remote netip.AddrPort) socket {
	found, err := diag.ask(local, remote)
	switch {
	case err == nil:
		return found
	case errors.Is(err, errOther):
		return socket{}
	case errors.Is(err, unix.ENOENT) && answers():
		return socket{}
	case remote == (netip.AddrPort{}):
		return twice(func() socket { return listenerInTables(local) })
	}
	return twice(func() socket { return connectionInTables(local, remote) })
}

// twice looks again where nothing was found, or root. The tables are read in
// pieces while the kernel changes them, and a line can slip through between two;
// and the user of a socket whose process has just ended reads as root.
func twice(look func() socket) socket {
	found := look()
	if found.uid == 0 {
		found = look()
	}
	return found
}

// tables are those that may have a socket of an address: one of [::] takes IPv4, too.
func tables(of netip.Addr) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
			if of.Is6() && name == "/proc/net/tcp" {
				continue
			}
			if raw, err := os.ReadFile(name); err == nil && !yield(raw) {
				return
			}
		}
	}
}

func listenerInTables(address netip.AddrPort) socket {
	var best listed
	for raw := range tables(address.Addr()) {
		if s := findListener(raw, address); s.rank > best.rank {
			best = s
		}
	}
	if best.twoUsers {
		return socket{} // which of them it is the tables do not say
	}
	return best.socket
}

func connectionInTables(from, to netip.AddrPort) socket {
	for raw := range tables(from.Addr()) {
		if found := findConnection(raw, from, to); found != (socket{}) {
			return found
		}
	}
	return socket{}
}

// row is one line of a table: sl local_address rem_address st queues timer
// retrnsmt uid timeout inode …
type row struct {
	local, remote, state string
	socket
}

// readRow leaves out what cannot be read, and sockets that no process has.
func readRow(line []byte) (row, bool) {
	f := strings.Fields(string(line))
	if len(f) < 10 {
		return row{}, false
	}
	uid, badUID := strconv.ParseUint(f[7], 10, 32)
	inode, badInode := strconv.ParseUint(f[9], 10, 64)
	if badUID != nil || badInode != nil || inode == 0 {
		return row{}, false
	}
	return row{local: f[1], remote: f[2], state: f[3], socket: socket{inode: inode, uid: uint32(uid)}}, true
}

// findConnection picks the line of the socket at the end from.
func findConnection(table []byte, from, to netip.AddrPort) socket {
	port := fmt.Appendf(nil, ":%04X ", from.Port()) // few lines have it, and parsing one costs more than looking
	for line := range bytes.Lines(table) {
		if !bytes.Contains(line, port) {
			continue
		}
		r, ok := readRow(line)
		if ok && strings.Contains(statesConnected, r.state) && tableAddress(r.local) == from && tableAddress(r.remote) == to {
			return r.socket
		}
	}
	return socket{}
}

// listed is a listener in a table.
type listed struct {
	socket
	// rank orders sockets that would both take a connection to an address: the
	// kernel prefers the exact one to a wildcard.
	rank     int
	twoUsers bool // another user has one of the same rank
}

// findListener picks the line a connection to an address would reach.
func findListener(table []byte, address netip.AddrPort) listed {
	var best listed
	needle := fmt.Appendf(nil, ":%04X ", address.Port())
	for line := range bytes.Lines(table) {
		if !bytes.Contains(line, needle) {
			continue
		}
		r, ok := readRow(line)
		if !ok || r.state != stateListen {
			continue
		}
		local := tableAddress(r.local)
		if local.Port() != address.Port() {
			continue
		}
		switch rank := rank(local.Addr(), address.Addr()); {
		case rank > best.rank:
			best = listed{socket: r.socket, rank: rank}
		case rank == best.rank && rank > 0 && r.uid != best.uid:
			best.twoUsers = true
		}
	}
	return best
}

// tableAddress reads an address as the kernel prints it: 32-bit words in the
// machine's byte order, each in hexadecimal, a colon, and the port. IPv4 inside
// IPv6 is IPv4; what cannot be read is no address.
func tableAddress(s string) netip.AddrPort {
	words, hexPort, ok := strings.Cut(s, ":")
	if !ok {
		return netip.AddrPort{}
	}
	b, err := hex.DecodeString(words)
	if err != nil || len(b)%4 != 0 {
		return netip.AddrPort{}
	}
	for w := b; len(w) > 0; w = w[4:] {
		binary.NativeEndian.PutUint32(w, binary.BigEndian.Uint32(w))
	}
	addr, ok := netip.AddrFromSlice(b)
	port, err := strconv.ParseUint(hexPort, 16, 16)
	if !ok || err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(port))
}

package procinfo

import (
	"bytes"
	"iter"
	"net/netip"
	"path"
	"strconv"
)

// lsofSocket is a socket as lsof writes it: IPv4 or IPv6, and its name.
type lsofSocket struct{ family, name string }

// lsofSockets reads the field output of lsof and gives each socket with the process
// that has it. It is one field a line, its kind the first letter; p, c, u and L
// introduce a process, t and n describe each of its sockets.
func lsofSockets(out []byte) iter.Seq2[Process, lsofSocket] {
	return func(yield func(Process, lsofSocket) bool) {
		var current Process
		family := ""
		for line := range bytes.Lines(out) {
			line = bytes.TrimRight(line, "\r\n")
			if len(line) < 2 {
				continue
			}
			value := string(line[1:])
			switch line[0] {
			case 'p':
				pid, err := strconv.Atoi(value)
				if err != nil || pid < 1 {
					pid = 0
				}
				current = Process{PID: pid}
			case 'c':
				current.Program = path.Base(value)
			case 'u':
				current.UserID = uidOf(value)
			case 'L':
				current.User = value
			case 't':
				family = value
			case 'n':
				if current.PID != 0 && !yield(current, lsofSocket{family, value}) {
					return
				}
				family = ""
			}
		}
	}
}

// uidOf is a uid as it is always written, or empty.
func uidOf(value string) string {
	uid, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		return ""
	}
	return strconv.FormatUint(uid, 10)
}

// parseLsof returns the first process with a socket that takes connections to an
// address, the exact one before a wildcard. A wildcard of IPv6 takes IPv4 too.
func parseLsof(out []byte, address netip.AddrPort) Process {
	any := "*:" + strconv.Itoa(int(address.Port()))
	var wildcard Process
	for process, socket := range lsofSockets(out) {
		switch {
		case socket.name == address.String():
			return process
		case socket.name == any && wildcard.PID == 0 && (address.Addr().Is4() || socket.family != "IPv4"):
			wildcard = process
		}
	}
	return wildcard
}

// parseLsofCaller returns the process that has the given socket, "from->to".
func parseLsofCaller(out []byte, name string) Process {
	for process, socket := range lsofSockets(out) {
		if socket.name == name {
			return process
		}
	}
	return Process{}
}

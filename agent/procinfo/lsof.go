package procinfo

import (
	"bytes"
	"iter"
	"path"
	"strconv"
)

// lsofSockets reads the field output of lsof and gives each socket by its name,
// with the process that has it. It is one field a line, its kind the first
// letter; p, c, u and L introduce a process, n names each of its sockets.
func lsofSockets(out []byte) iter.Seq2[Process, string] {
	return func(yield func(Process, string) bool) {
		var current Process
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
			case 'n':
				if current.PID != 0 && !yield(current, value) {
					return
				}
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

// parseLsof returns the first process with a socket that takes connections to
// 127.0.0.1:port, the exact address before a wildcard.
func parseLsof(out []byte, port int) Process {
	suffix := ":" + strconv.Itoa(port)
	var wildcard Process
	for process, socket := range lsofSockets(out) {
		switch {
		case socket == "127.0.0.1"+suffix:
			return process
		case socket == "*"+suffix && wildcard.PID == 0:
			wildcard = process
		}
	}
	return wildcard
}

// parseLsofCaller returns the process that has the given socket, "from->to".
func parseLsofCaller(out []byte, name string) Process {
	for process, socket := range lsofSockets(out) {
		if socket == name {
			return process
		}
	}
	return Process{}
}

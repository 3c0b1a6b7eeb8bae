package procinfo

import (
	"bytes"
	"path"
	"strconv"

	"porchlight/agent/agentapi"
)

// parseLsof reads the field output of `lsof -FpcLn`: one field a line, its kind
// the first letter; p, c and L introduce a process, n names each of its
// sockets. The first process with a socket that takes connections to
// 127.0.0.1:port wins, the exact address before a wildcard.
func parseLsof(out []byte, port int) agentapi.Listener {
	suffix := ":" + strconv.Itoa(port)
	var current, wildcard agentapi.Listener
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
			current = agentapi.Listener{PID: pid}
		case 'c':
			current.Program = path.Base(value)
		case 'L':
			current.User = value
		case 'n':
			switch {
			case current.PID == 0:
			case value == "127.0.0.1"+suffix:
				return current
			case value == "*"+suffix && wildcard.PID == 0:
				wildcard = current
			}
		}
	}
	return wildcard
}

// parseLsofCaller reads the field output of `lsof -FpcLn` and returns the process
// that has the given socket, "from->to".
func parseLsofCaller(out []byte, socket string) Process {
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
		case 'L':
			current.User = value
		case 'n':
			if current.PID != 0 && value == socket {
				return current
			}
		}
	}
	return Process{}
}

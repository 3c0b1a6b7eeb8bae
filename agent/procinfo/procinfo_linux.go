package procinfo

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"porchlight/agent/agentapi"
)

// stateListen is TCP_LISTEN as /proc/net/tcp prints it.
const stateListen = "0A"

// listening finds the socket in the kernel's tables first and the process that
// holds it second. The tables tell the user even where the descriptors of
// another user's process are not ours to read.
func listening(port int) agentapi.Listener {
	var found socket
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		raw, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		if s, ok := findSocket(raw, port); ok && s.rank > found.rank {
			found = s
		}
	}
	if found.rank == 0 {
		return agentapi.Listener{}
	}
	p := agentapi.Listener{User: userName(found.uid), UserID: found.uid}
	if pid := holder(found.inode); pid != 0 {
		p.PID = pid
		p.Program = program(pid)
	}
	return p
}

// socket is one listening line of a table.
type socket struct {
	inode, uid string
	// rank orders sockets that would both take a connection to 127.0.0.1: the
	// kernel prefers the exact address to a wildcard.
	rank int
}

// findSocket picks the line a connection to 127.0.0.1:port would reach.
func findSocket(table []byte, port int) (socket, bool) {
	var best socket
	needle := fmt.Appendf(nil, ":%04X ", port)
	for line := range bytes.Lines(table) {
		if !bytes.Contains(line, needle) {
			continue
		}
		// sl local_address rem_address st queues timer retrnsmt uid timeout inode …
		f := strings.Fields(string(line))
		if len(f) < 10 || f[3] != stateListen {
			continue
		}
		address, hexPort, ok := strings.Cut(f[1], ":")
		if !ok {
			continue
		}
		if p, err := strconv.ParseUint(hexPort, 16, 16); err != nil || int(p) != port {
			continue
		}
		if r := rank(address); r > best.rank {
			best = socket{inode: f[9], uid: f[7], rank: r}
		}
	}
	return best, best.rank > 0
}

// rank is 0 for an address that does not take connections to 127.0.0.1. The
// kernel prints addresses as 32-bit words in the machine's byte order, and the
// ones that matter here read the same but for their order of bytes.
func rank(address string) int {
	b, err := hex.DecodeString(address)
	if err != nil {
		return 0
	}
	if len(b) == 16 {
		mapped := []byte{0xff, 0xff}
		if allZero(b[:8]) && (bytes.Equal(b[8:12], append([]byte{0, 0}, mapped...)) || bytes.Equal(b[8:12], append(mapped, 0, 0))) {
			b = b[12:]
		} else if allZero(b) {
			return 1
		}
	}
	switch {
	case len(b) != 4:
		return 0
	case allZero(b):
		return 2
	case bytes.Equal(b, []byte{127, 0, 0, 1}), bytes.Equal(b, []byte{1, 0, 0, 127}):
		return 3
	}
	return 0
}

func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// holder walks the open descriptors of the processes we may look into.
func holder(inode string) int {
	want := "socket:[" + inode + "]"
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, entry := range processes {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if holds(entry.Name(), want) {
			return pid
		}
	}
	return 0
}

// holds says whether the process has a descriptor of what a link of /proc reads
// as; false also where its descriptors are not ours to see.
func holds(pid, want string) bool {
	dir := filepath.Join("/proc", pid, "fd")
	descriptors, err := os.Open(dir)
	if err != nil {
		return false
	}
	names, _ := descriptors.Readdirnames(-1)
	descriptors.Close()
	for _, name := range names {
		if target, err := os.Readlink(filepath.Join(dir, name)); err == nil && target == want {
			return true
		}
	}
	return false
}

// program is the base name of the executable; of the command's short name when
// the executable itself is not ours to see.
func program(pid int) string {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	if exe, err := os.Readlink(filepath.Join(dir, "exe")); err == nil {
		return filepath.Base(strings.TrimSuffix(exe, " (deleted)"))
	}
	raw, err := os.ReadFile(filepath.Join(dir, "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

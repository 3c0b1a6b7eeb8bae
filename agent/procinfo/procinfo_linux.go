package procinfo

import (
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

func listenerSocket(port int) Socket {
	return described(socketAt(netip.AddrPortFrom(loopback, uint16(port)), netip.AddrPort{}))
}

func callerSocket(from, to netip.AddrPort) Socket { return described(socketAt(from, to)) }

func described(s socket) Socket {
	if s == (socket{}) {
		return Socket{}
	}
	uid := strconv.FormatUint(uint64(s.uid), 10)
	return Socket{User: userName(uid), UserID: uid, Inode: s.inode}
}

// walk looks through the open descriptors of the socket's user's processes, as
// far as we may look into them. Those of others are left out by their
// directory's owner alone.
func walk(s Socket) int {
	proc, err := os.Open("/proc")
	if err != nil {
		return 0
	}
	names, _ := proc.Readdirnames(-1)
	proc.Close()
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && holds(pid, s) {
			return pid
		}
	}
	return 0
}

// holds says whether the process is the socket's user's and has it; false also
// where its descriptors are not ours to see.
func holds(pid int, s Socket) bool {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || strconv.FormatUint(uint64(owner.Uid), 10) != s.UserID {
		return false
	}
	dir = filepath.Join(dir, "fd")
	descriptors, err := os.Open(dir)
	if err != nil {
		return false
	}
	names, _ := descriptors.Readdirnames(-1)
	descriptors.Close()
	want := "socket:[" + strconv.FormatUint(s.Inode, 10) + "]"
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

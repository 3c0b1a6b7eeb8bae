package procinfo

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const filesAtOnce = 256

// lookThrough looks into every process of the socket's user. Those of others are
// left out by the owner of their directory alone. all is false when until came
// before the end.
func lookThrough(s Socket, until time.Time) (at place, all bool) {
	if !seen(s.UserID) {
		return place{}, true
	}
	proc, err := os.Open("/proc")
	if err != nil {
		return place{}, false
	}
	names, _ := proc.Readdirnames(-1)
	proc.Close()
	all = true
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		found, whole := lookInto(pid, s, math.MaxInt, until)
		if found != (place{}) {
			return found, true
		}
		all = all && whole
	}
	return place{}, all
}

// seen says whether the files of a user's processes are ours to see.
func seen(userID string) bool { return os.Geteuid() == 0 || userID == self() }

// lookInto looks at that many files of a process of the socket's user. whole is
// false when some were left.
func lookInto(pid int, s Socket, most int, until time.Time) (at place, whole bool) {
	if !belongs(pid, s.UserID) {
		return place{}, true
	}
	files, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "fd"))
	if err != nil {
		return place{}, true // not ours to see
	}
	defer files.Close()
	for n := 0; n < most; n += filesAtOnce {
		if !until.IsZero() && time.Now().After(until) {
			return place{}, false
		}
		names, err := files.Readdirnames(filesAtOnce)
		for _, name := range names {
			file, err := strconv.Atoi(name)
			if at := (place{pid, file}); err == nil && isAt(at, s) {
				return at, true
			}
		}
		if err != nil {
			return place{}, true // that were all
		}
	}
	return place{}, false
}

// belongs says whether a process is a user's.
func belongs(pid int, userID string) bool {
	info, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
	if err != nil {
		return false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && strconv.FormatUint(uint64(owner.Uid), 10) == userID
}

// isAt says whether the socket is there. A socket has one number in every process.
func isAt(at place, s Socket) bool {
	target, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(at.pid), "fd", strconv.Itoa(at.file)))
	return err == nil && target == "socket:["+strconv.FormatUint(s.Inode, 10)+"]"
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

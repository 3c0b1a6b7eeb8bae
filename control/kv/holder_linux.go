package kv

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// holderOf describes the process that holds the lock of the file at path, as
// " (NAME, pid 123)"; empty where the kernel does not tell this user.
func holderOf(path string) string {
	var file unix.Stat_t
	if unix.Stat(path, &file) != nil {
		return ""
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return ""
	}
	defer locks.Close()
	dev := uint64(file.Dev)
	pid := findLock(locks, fmt.Sprintf("%02x:%02x:%d", unix.Major(dev), unix.Minor(dev), file.Ino))
	if pid == 0 {
		return ""
	}
	name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil { // it ended meanwhile
		return ""
	}
	return fmt.Sprintf(" (%s, pid %d)", oneWord(string(name)), pid)
}

// findLock returns the process that holds an flock of the file, which proc(5)
// writes as "1: FLOCK ADVISORY WRITE 123 08:01:4711 0 EOF"; 0 for none, or
// one outside of what this process may see. Who waits has "->" after the number.
func findLock(table io.Reader, file string) (pid int) {
	lines := bufio.NewScanner(io.LimitReader(table, 4<<20))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 6 || f[1] != "FLOCK" || f[5] != file {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 {
			return pid
		}
	}
	return 0
}

// oneWord makes a process name, which may hold anything, fit for a terminal.
func oneWord(name string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, strings.TrimSuffix(name, "\n"))
}

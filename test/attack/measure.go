//go:build linux

package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// memory has the kernel keep a process's highest memory from now on and returns
// what it is now, in bytes; peak is the highest. Both are 0 of one that ended.
func memory(pid int) int64 {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0) // proc(5); it may have ended
	return statusOf(pid, "VmRSS")
}

func peak(pid int) int64 { return statusOf(pid, "VmHWM") }

func statusOf(pid int, field string) int64 {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	found := regexp.MustCompile(field + `:\s+(\d+)`).FindSubmatch(raw)
	if found == nil {
		return 0
	}
	n, _ := strconv.ParseInt(string(found[1]), 10, 64) // digits
	return n << 10
}

// cpuOf is the processor time a process has used, in ticks of 10 ms.
func cpuOf(pid int) time.Duration {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// The name in parentheses may hold anything; the times are the 12th and 13th
	// field after it.
	_, rest, _ := strings.Cut(string(raw), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11]) // digits
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

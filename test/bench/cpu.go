package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// pids are a contender's process, its helpers' where they count, and the children of
// each.
func (c contender) pids() (pids []int, err error) {
	if c.pid != 0 {
		pids = append(pids, c.pid)
	}
	if c.whole {
		pids = append(pids, c.helpers...)
	}
	for _, pid := range pids {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		if err != nil {
			return nil, err
		}
		for child := range strings.FieldsSeq(string(children)) {
			pid, err := strconv.Atoi(child)
			if err != nil {
				return nil, err
			}
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// cpu is the processor time a contender has used so far, user and system, with
// all its processes.
func (c contender) cpu() (total time.Duration, err error) {
	pids, err := c.pids()
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		// The clock of a whole process, as clock_getcpuclockid(3) names it; it counts
		// nanoseconds where /proc counts ticks of ten milliseconds.
		var used unix.Timespec
		if err := unix.ClockGettime(int32(^pid<<3|2), &used); err != nil {
			return 0, fmt.Errorf("the processor time of %d: %w", pid, err)
		}
		total += time.Duration(used.Nano())
	}
	return total, nil
}

// resident is the memory a contender has, in bytes, with all its processes: what
// is private to each, and its share of the rest.
func (c contender) resident() (total float64, err error) {
	pids, err := c.pids()
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			return 0, err
		}
		_, rest, _ := bytes.Cut(rollup, []byte("\nPss:"))
		line, _, _ := bytes.Cut(rest, []byte(" kB"))
		kib, err := strconv.ParseFloat(string(bytes.TrimSpace(line)), 64)
		if err != nil {
			return 0, fmt.Errorf("the memory of %d: %w", pid, err)
		}
		total += kib * 1024
	}
	return total, nil
}

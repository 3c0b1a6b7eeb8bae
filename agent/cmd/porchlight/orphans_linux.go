package main

import (
	"bytes"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dieWithUs has a program told to end when this one is killed.
func dieWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }

const adoptsOrphans = true

// adoptOrphans makes this process the parent of whatever a program that it runs
// leaves behind, so that it can be found.
func adoptOrphans() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // a kernel without it has none
}

// nobodys is how long an ended process has to be there before it is taken for one that
// nobody here has started: who did asks for its end at once.
const nobodys = time.Second

// buryOrphans forgets the adopted ones that have ended, until over: the system would
// keep each for as long as this process runs. The leader's end is for whoever started it.
func buryOrphans(leader int, done <-chan struct{}) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	for {
		select {
		case <-done:
			return
		case <-ended:
		}
		found := endedChildren()
		select {
		case <-done:
			return
		case <-time.After(nobodys):
		}
		for _, pid := range found {
			if pid != leader {
				_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // fails where it was asked for meanwhile
			}
		}
	}
}

// endedChildren are the children of this process that have ended and are still there.
func endedChildren() (pids []int) {
	mine := []byte(" Z " + strconv.Itoa(os.Getpid()) + " ")
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // gone meanwhile
		}
		// "PID (NAME) STATE PARENT …", where the name may hold anything.
		if end := bytes.LastIndexByte(raw, ')'); end >= 0 && bytes.HasPrefix(raw[end+1:], mine) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

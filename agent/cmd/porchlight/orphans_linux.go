package main

import (
	"syscall"

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

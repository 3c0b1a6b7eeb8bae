//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
	"time"

	"porchlight/agent/procinfo"
)

// group is a program with those it started. Where they share our terminal they are in
// our own process group, which holds whoever started us as well, and so they are told
// one by one.
type group struct {
	shared bool
	leader int
}

func (g *group) prepare(cmd *exec.Cmd) {
	adoptOrphans()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !g.shared}
	dieWithUs(cmd.SysProcAttr)
}

func (g *group) started(cmd *exec.Cmd, ended <-chan struct{}) {
	g.leader = cmd.Process.Pid
	go buryOrphans(g.leader, ended)
}

func (g *group) signal(s os.Signal) {
	number, ok := s.(syscall.Signal)
	if !ok {
		return
	}
	if !g.shared {
		_ = syscall.Kill(-g.leader, number) // fails when all are gone
	}
	if g.shared || number == syscall.SIGKILL {
		for _, pid := range offspring(g.leader) {
			_ = syscall.Kill(pid, number)
		}
	}
}

func (g *group) kill() { g.signal(syscall.SIGKILL) }

// gone waits until all of them have ended, for so long.
func (g *group) gone(most time.Duration) {
	for until := time.Now().Add(most); len(offspring(g.leader)) > 0 && time.Now().Before(until); {
		time.Sleep(lookFirst)
	}
}

// offspring are the program and all that it started, also those whose parent has
// ended, where the system gives them to us.
func offspring(leader int) (pids []int) {
	if !adoptsOrphans {
		return procinfo.Descendants(leader)
	}
	for _, pid := range procinfo.Descendants(os.Getpid()) {
		if pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// byShell is the exit code of a program that was ended by a signal.
func byShell(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return 1
}

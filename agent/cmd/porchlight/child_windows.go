package main

import (
	"errors"
	"os"
	"os/exec"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is a job object: it holds a program and all that it starts, and ends them when
// this process ends, however that comes.
type group struct {
	shared  bool
	job     windows.Handle // 0 where there is none
	program *os.Process
}

// prepare leaves the program on our console, where Ctrl-C reaches it.
func (g *group) prepare(*exec.Cmd) { g.shared = true }

func (g *group) started(cmd *exec.Cmd, _ <-chan struct{}) {
	g.program = cmd.Process
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err == nil {
		var failed error
		err = cmd.Process.WithHandle(func(h uintptr) { failed = windows.AssignProcessToJobObject(job, windows.Handle(h)) })
		err = errors.Join(err, failed)
	}
	if err != nil {
		windows.CloseHandle(job)
		return
	}
	g.job = job
}

// signal can do nothing but end: a console program is told by Ctrl-C alone.
func (g *group) signal(os.Signal) { g.kill() }

func (g *group) kill() {
	if g.job == 0 {
		_ = g.program.Kill() // fails when it has ended
		return
	}
	_ = windows.TerminateJobObject(g.job, 1)
}

// gone has nothing to wait for: what outlives the program is ended with the job.
func (g *group) gone(time.Duration) {}

func byShell(*os.ProcessState) int { return 1 }

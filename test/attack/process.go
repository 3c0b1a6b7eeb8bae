//go:build linux

package main

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"porchlight/test/programs"
	"porchlight/test/rig"
)

// keeper knows every process that was started, so that none is left behind.
type keeper struct {
	mu      sync.Mutex // protects started
	started []*programs.Process
}

// begin starts a program that ends with the stage.
func (k *keeper) begin(cmd *exec.Cmd) (*programs.Process, error) {
	// A group of its own, so that Ctrl-C reaches it by us alone.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p, err := programs.Start(cmd)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.started = append(k.started, p)
	return p, nil
}

// start runs a program and returns the first line it prints, or an error when it
// ends or stays silent.
func (k *keeper) start(ctx context.Context, env []string, program string, args ...string) (p *programs.Process, line string, err error) {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), env...)
	if p, err = k.begin(cmd); err != nil {
		return nil, "", err
	}
	found, err := p.Says(ctx, `^.*\n`)
	return p, strings.Join(found, ""), err
}

// rig runs the programs, which may open so many files; 0 for as many as we.
func (s *stage) rig(files int) *rig.Rig {
	return &rig.Rig{Bin: s.bin, Env: append(os.Environ(), "PORCHLIGHT_API=", "PORCHLIGHT_DATA="), Begin: func(cmd *exec.Cmd) (*programs.Process, error) {
		if files > 0 {
			limited := exec.Command("sh", append([]string{"-c", `ulimit -n "$0" && exec "$@"`, strconv.Itoa(files)}, cmd.Args...)...)
			limited.Env, cmd = cmd.Env, limited
		}
		return s.begin(cmd)
	}}
}

// end stops everything that was started, the latest first.
func (k *keeper) end() {
	k.mu.Lock()
	started := k.started
	k.started = nil
	k.mu.Unlock()
	for _, p := range started {
		p.Signal(syscall.SIGTERM)
	}
	for i := len(started) - 1; i >= 0; i-- {
		started[i].Wait()
	}
}

// latest is the process that was started last.
func (k *keeper) latest() *programs.Process {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.started[len(k.started)-1]
}

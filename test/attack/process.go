//go:build linux

package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"porchlight/test/programs"
)

// keeper knows every process that was started, so that none is left behind.
type keeper struct {
	mu      sync.Mutex // protects started
	started []*programs.Process
}

// start runs a program and returns the first line it prints, or an error when it
// ends or stays silent.
func (k *keeper) start(ctx context.Context, env []string, program string, args ...string) (p *programs.Process, line string, err error) {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), env...)
	// A group of its own, so that Ctrl-C reaches it by us alone.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p, err = programs.Start(cmd); err != nil {
		return nil, "", err
	}
	k.mu.Lock()
	k.started = append(k.started, p)
	k.mu.Unlock()
	found, err := p.Says(ctx, `^.*\n`)
	return p, strings.Join(found, ""), err
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

// command runs a program to its end and returns what it printed.
func command(ctx context.Context, program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, programs.Patience)
	defer cancel()
	return programs.Output(exec.CommandContext(ctx, program, args...))
}

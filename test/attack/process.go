//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startsIn = time.Minute      // a program, until it says that it is on
	endsIn   = 20 * time.Second // after SIGTERM
)

// keeper knows every process that was started, so that none is left behind.
type keeper struct {
	mu      sync.Mutex // protects started
	started []*process
}

// process is a program that runs.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended

	mu   sync.Mutex // protects what follows
	said bytes.Buffer
}

// Write takes what the process prints, to be shown should it fail.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.said.Len() < 1<<20 {
		p.said.Write(b)
	}
	return len(b), nil
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// start runs a program and returns the first line it prints, or an error when it
// ends or stays silent.
func (k *keeper) start(ctx context.Context, env []string, program string, args ...string) (p *process, line string, err error) {
	p = &process{cmd: exec.Command(program, args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	// A group of its own, so that Ctrl-C reaches it by us alone.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stderr = p
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, "", err
	}
	k.mu.Lock()
	k.started = append(k.started, p)
	k.mu.Unlock()
	first := make(chan string, 1)
	go func() {
		defer close(p.done)
		r := bufio.NewReader(out)
		if line, err := r.ReadString('\n'); err == nil {
			first <- line
		}
		_, _ = io.Copy(p, r)
		_ = p.cmd.Wait() // a killed one ends with an error
	}()
	select {
	case line = <-first:
		return p, line, nil
	case <-p.done:
		return p, "", fmt.Errorf("%s ended with %v: %s", program, p.cmd.ProcessState, bytes.TrimSpace([]byte(p.output())))
	case <-ctx.Done():
		return p, "", ctx.Err()
	case <-time.After(startsIn):
		return p, "", errors.New(program + " does not say that it is on")
	}
}

// kill is kill -9, and returns when the process is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
}

// stop ends a process as an operator does, and kills it when that takes long.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.done:
	case <-time.After(endsIn):
		fmt.Printf("   %s did not end by SIGTERM and was killed\n", strings.Join(p.cmd.Args, " "))
		p.kill()
	}
}

// end stops everything that was started, the latest first.
func (k *keeper) end() {
	k.mu.Lock()
	started := k.started
	k.started = nil
	k.mu.Unlock()
	for _, p := range started {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	}
	for i := len(started) - 1; i >= 0; i-- {
		started[i].stop()
	}
}

// command runs a program to its end and returns what it printed, of both kinds.
func command(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startsIn)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	return string(out), err
}

// latest is the process that was started last.
func (k *keeper) latest() *process {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.started[len(k.started)-1]
}

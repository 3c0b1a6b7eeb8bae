// Package programs runs the real programs for the tests and the demonstration:
// it starts one, waits for what it prints, ends it, and leaves no process behind.
package programs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// Patience bounds the wait for anything that a program has to do.
	Patience = time.Minute

	// endsIn is how long a program may take to end by SIGTERM.
	endsIn = 40 * time.Second

	// maxPrinted bounds what is kept of what a program prints, in bytes.
	maxPrinted = 16 << 20
)

// Process is a program that was started.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended

	mu       sync.Mutex // protects what follows
	out, err bytes.Buffer
	grown    chan struct{} // closed and replaced at each write
}

// stream is one of the two that a process prints to.
type stream struct {
	p    *Process
	kept *bytes.Buffer
}

func (s stream) Write(b []byte) (int, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.kept.Write(b[:min(len(b), maxPrinted-s.kept.Len())])
	close(s.p.grown)
	s.p.grown = make(chan struct{})
	return len(b), nil
}

// Start begins cmd. It keeps what cmd prints, but for an output that the caller
// reads.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, done: make(chan struct{}), grown: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = stream{p, &p.out}
	}
	if cmd.Stderr == nil {
		cmd.Stderr = stream{p, &p.err}
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // its state says how it ended
	}()
	return p, nil
}

// Begin starts a command of a test, which ends with the test. What it printed is
// shown when the test fails.
func Begin(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p, err := Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s\n%s%s", strings.Join(cmd.Args, " "), p.Stdout(), p.Stderr())
		}
	})
	return p
}

// Stdout is what it has printed to its standard output so far.
func (p *Process) Stdout() string { p.mu.Lock(); defer p.mu.Unlock(); return p.out.String() }

// Stderr is what it has printed to its standard error so far.
func (p *Process) Stderr() string { p.mu.Lock(); defer p.mu.Unlock(); return p.err.String() }

// PID is its process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when it has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Says waits until what it has printed to its standard output matches a regular
// expression, and returns the groups. It fails when the process ends before, or
// does not say it within a minute.
func (p *Process) Says(ctx context.Context, pattern string) ([]string, error) {
	return p.prints(ctx, &p.out, pattern)
}

// Logs is Says of its standard error.
func (p *Process) Logs(ctx context.Context, pattern string) ([]string, error) {
	return p.prints(ctx, &p.err, pattern)
}

func (p *Process) prints(ctx context.Context, kept *bytes.Buffer, pattern string) ([]string, error) {
	re := regexp.MustCompile(pattern)
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	for ended := false; ; {
		p.mu.Lock()
		found, grown := re.FindStringSubmatch(kept.String()), p.grown
		p.mu.Unlock()
		switch {
		case found != nil:
			return found, nil
		case ended || ctx.Err() != nil:
			return nil, fmt.Errorf("%s did not say %q (ended: %t): %s%s", p.cmd.Path, pattern, ended, p.Stdout(), p.Stderr())
		}
		select {
		case <-grown:
		case <-ctx.Done():
		case <-p.done:
			ended = true // what it printed last is there by now
		}
	}
}

// Signal asks it for something; one that has ended needs nothing.
func (p *Process) Signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// Stop ends it as an operator does, and returns how it ended. One that takes long
// is killed, and its exit code is -1 then.
func (p *Process) Stop() (exitCode int) {
	p.Signal(syscall.SIGTERM)
	return p.Wait()
}

// Wait returns how it ended. One that does not end is killed.
func (p *Process) Wait() (exitCode int) {
	select {
	case <-p.done:
	case <-time.After(endsIn):
		p.Kill()
	}
	return p.cmd.ProcessState.ExitCode()
}

// Kill is kill -9; it returns when the process is gone.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.done
}

// Output runs a command to its end and returns its standard output. What it
// printed to standard error is in the error when it fails.
func Output(cmd *exec.Cmd) ([]byte, error) {
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		err = errors.New(strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return out, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return out, nil
}

// Main builds commands of this module, tells use where they are, runs the tests of
// m, and returns what TestMain has to end with.
func Main(m interface{ Run() int }, use func(dir string), packages ...string) (code int) {
	dir, err := Build(packages...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	use(dir)
	return m.Run()
}

// Build builds commands of this module into a new directory.
func Build(packages ...string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "porchlight-programs-"); err != nil {
		return "", err
	}
	out, err := exec.Command("go", append([]string{"build", "-o", dir + "/"}, packages...)...).CombinedOutput()
	if err != nil {
		return "", errors.Join(fmt.Errorf("go build: %w\n%s", err, out), os.RemoveAll(dir))
	}
	return dir, nil
}

// Eventually waits until it is so.
func Eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(Patience); !so(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

// test is what Must and Got need of a test: also rapid's and a rig's own.
type test interface {
	Helper()
	Fatal(args ...any)
}

// Must ends a test where something failed.
func Must(t test, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Got is the result of a call that has to succeed; the test ends where it failed:
// key := Got(os.ReadFile(name))(t).
func Got[T any](result T, err error) func(test) T {
	return func(t test) T {
		t.Helper()
		Must(t, err)
		return result
	}
}

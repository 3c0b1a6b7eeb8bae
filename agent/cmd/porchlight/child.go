package main

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/term"
)

const (
	// politely is how long a program may take to end by itself after it was told to,
	// and firmly after it was told so once more, by a signal that fewer ignore.
	politely = 5 * time.Second
	firmly   = 3 * time.Second

	// hears is how long a signal can be on its way to one reader when another has it.
	hears = 100 * time.Millisecond
)

// child is a program that this one runs, on the terminal they share.
type child struct {
	cmd     *exec.Cmd
	ended   chan struct{} // closed when it has
	signals chan os.Signal
	group   // what the system has for a program and those it starts
}

// startChild starts a program. On a terminal it stays in the foreground with us, so
// that it can read what is typed; Ctrl-C then reaches it by itself.
func startChild(line []string, port int) (*child, error) {
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = environment(port)
	c := &child{cmd: cmd, ended: make(chan struct{}), signals: make(chan os.Signal, 8)}
	c.group.shared = term.IsTerminal(int(os.Stdin.Fd()))
	c.group.prepare(cmd)
	signal.Notify(c.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	started := make(chan error)
	go func() {
		// The system ends the program with the thread that started it, where it is
		// asked to: see dieWithUs.
		runtime.LockOSThread()
		err := cmd.Start()
		if started <- err; err == nil {
			defer close(c.ended)
			_ = cmd.Wait() // its end is in cmd.ProcessState
		}
	}()
	if err := <-started; err != nil {
		signal.Stop(c.signals)
		return nil, err
	}
	c.group.started(cmd, c.ended)
	return c, nil
}

func (c *child) pid() int     { return c.cmd.Process.Pid }
func (c *child) name() string { return filepath.Base(c.cmd.Path) }

func (c *child) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// end has the program end, and all that it started: by the signal that this one got,
// then by SIGTERM, and in the end whether it wants or not. Another Ctrl-C is that end.
// stopped says that this program was told to end, and not that the other one has.
func (c *child) end(stopped bool) {
	defer signal.Stop(c.signals)
	defer c.group.kill()
	defer c.group.gone(firmly) // what outlived it
	first := c.stopSignal(stopped)
	if !c.group.shared || first != os.Interrupt {
		c.group.signal(first)
	}
	if c.endsWithin(politely) {
		return
	}
	c.group.signal(syscall.SIGTERM)
	if c.endsWithin(firmly) {
		return
	}
	c.group.kill()
	<-c.ended
}

// stopSignal is the signal that this program got, or the one that ends another politely.
func (c *child) stopSignal(stopped bool) os.Signal {
	if stopped {
		select {
		case s := <-c.signals:
			return s
		case <-time.After(hears):
		}
	}
	return syscall.SIGTERM
}

// endsWithin is also true when the owner is not willing to wait.
func (c *child) endsWithin(d time.Duration) bool {
	select {
	case <-c.ended:
		return true
	case <-c.signals:
		c.group.kill()
		<-c.ended
		return true
	case <-time.After(d):
		return false
	}
}

// code is what the shell would say of its end. It has ended.
func (c *child) code() int {
	if code := c.cmd.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return byShell(c.cmd.ProcessState)
}

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"porchlight/test/programs"
)

// asProgram has this binary be the program, where a test needs one that can be
// killed.
const asProgram = "PORCHLIGHT_TEST_PROGRAM"

// process is the command line in a process of its own.
type process struct {
	*exec.Cmd
	t    *testing.T
	tty  *os.File // the end of the terminal it runs on; nil for pipes
	mu   sync.Mutex
	said bytes.Buffer
	read chan struct{}
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.Write(b)
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// inProcess is the program with its line, not started.
func inProcess(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	self := programs.Got(os.Executable())(t)
	p := &process{Cmd: exec.Command(self, args...), t: t, read: make(chan struct{})}
	p.Env = append(os.Environ(), asProgram+"=1", "PORCHLIGHT_DATA="+dir, "TERM=xterm")
	p.Dir = filepath.Join(t.TempDir(), "My.Shop")
	programs.Must(t, os.Mkdir(p.Dir, 0o700))
	return p
}

// onPipes starts it with its output on pipes.
func (p *process) onPipes() *process {
	p.t.Helper()
	p.Stdout, p.Stderr = p, p
	p.WaitDelay = 5 * time.Second // of what a killed one leaves behind
	close(p.read)
	p.start()
	return p
}

// onTerminal starts it on a terminal of its own, as its foreground.
func (p *process) onTerminal() *process {
	p.t.Helper()
	// Not blocking, so that closing it ends the reading of it.
	fd := programs.Got(unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0))(p.t)
	tty := os.NewFile(uintptr(fd), "/dev/ptmx")
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	programs.Must(p.t, err)
	inner := programs.Got(os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|syscall.O_NOCTTY, 0))(p.t)
	p.tty = tty
	p.Stdin, p.Stdout, p.Stderr = inner, inner, inner
	p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p.start()
	inner.Close()
	go func() {
		defer close(p.read)
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			p.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	return p
}

func (p *process) start() {
	p.t.Helper()
	// A program that is started while SIGHUP is ignored, as under nohup, ignores it, too.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	programs.Must(p.t, p.Start())
	p.t.Cleanup(func() {
		if p.ProcessState == nil {
			p.Process.Kill()
			p.Wait()
		}
		if p.tty != nil {
			p.tty.Close()
		}
		if p.t.Failed() {
			p.t.Logf("%s said:\n%s", strings.Join(p.Args[1:], " "), p.output())
		}
	})
}

// says waits until the program has said something.
func (p *process) says(what string) {
	p.t.Helper()
	programs.Eventually(p.t, "the program says "+what, func() bool { return strings.Contains(p.output(), what) })
}

// ctrlC presses that on its terminal.
func (p *process) ctrlC() {
	p.t.Helper()
	programs.Got(p.tty.Write([]byte{3}))(p.t)
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	programs.Must(p.t, p.Process.Signal(s))
}

// stops sends a signal, at which it ends well.
func (p *process) stops(s syscall.Signal) {
	p.t.Helper()
	p.signal(s)
	p.ends(0)
}

// ends waits for the end with a code.
func (p *process) ends(code int) {
	p.t.Helper()
	err := p.Wait()
	if p.tty != nil {
		<-p.read
	}
	if got := p.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("it ended with %d (%v), want %d:\n%s", got, err, code, p.output())
	}
}

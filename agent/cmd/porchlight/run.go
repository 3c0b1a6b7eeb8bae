package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"porchlight/agent/procinfo"
	"porchlight/control/controlapi"
	"porchlight/internal/commandline"
	"porchlight/internal/durable"
)

const (
	lookFirst = 20 * time.Millisecond // between looks for the port, at first
	lookLast  = time.Second           // and in the end
	quietly   = 15 * time.Second      // until somebody who waits is told for what
)

func runCommand(c cli) *cobra.Command {
	// What is ours to say goes beside what the program says, not into it.
	s := sharing{c: cli{c.location, &terminal{out: c.err, err: c.err}}}
	cmd := &cobra.Command{
		Use:   "run NAME -- COMMAND...",
		Short: "Run a program and share the port it listens on, until either ends",
		Long: `Run a program and share the port it listens on, until either ends, as
'porchlight share' does.

The program gets a free port in PORT. Whether it takes that or another one, the
port is found by what the program, or one it started, listens on. When it ends, its
exit code is that of this command; Ctrl-C ends the program, too.`,
		Example: `  porchlight run shop -- npm run dev
  porchlight run notes --label Notes -- python3 -m http.server --bind 127.0.0.1`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 1 || len(args) < 2 {
				return commandline.Usagef("run takes the NAME of an address, --, and the command to run")
			}
			if !controlapi.ValidLabel(args[0]) {
				return commandline.Usagef("%.80q cannot be part of an address: a name has 1 to 63 lower-case letters a to z, digits and hyphens", args[0])
			}
			return nil
		},
	}
	s.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s.name = args[0]
		ctx, stop := s.untilTerminalEnds(cmd.Context())
		defer stop()
		return s.run(ctx, args[1:])
	}
	return cmd
}

// run is the whole command: a program with an address for as long as both last.
func (s *sharing) run(ctx context.Context, line []string) error {
	if err := s.reach(ctx); err != nil {
		return unlessStopped(err)
	}
	wished, err := freePort()
	if err == nil {
		var c *child
		if c, err = startChild(line, wished); err == nil {
			return s.with(ctx, c, wished)
		}
		err = notStarted(line[0], err)
	}
	return s.finish(err)
}

// notStarted says why a program could not be started, in the system's words where
// there are none of ours.
func notStarted(program string, err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%s could not be started: there is no program of this name on your PATH", printable(program))
	}
	return fmt.Errorf("%s could not be started: %w", printable(program), durable.Plain(err))
}

// with shares what a program listens on until it or ctx ends, and ends both.
func (s *sharing) with(ctx context.Context, c *child, wished int) error {
	life, end := context.WithCancel(ctx)
	defer end()
	go func() {
		select {
		case <-c.ended:
			end()
		case <-life.Done():
		}
	}()
	err := s.awaitPort(life, c, wished)
	if err == nil {
		err = s.show(life)
	}
	ending := make(chan struct{})
	go func() {
		defer close(ending)
		c.end(ctx.Err() != nil)
	}()
	err = s.finish(unlessStopped(err)) // nobody is sent to a program that ends
	<-ending
	if err == nil && c.code() != 0 {
		err = commandline.Passed(c.code())
	}
	return err
}

// awaitPort finds the port that the program listens on: the one it was given, if it
// is among them. Looking is all there is: no system tells of a new listener.
func (s *sharing) awaitPort(ctx context.Context, c *child, wished int) error {
	wait, notice := lookFirst, time.NewTimer(quietly)
	defer notice.Stop()
	for {
		if s.port = listensOn(c.pid(), wished); s.port != 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			if c.hasEnded() {
				s.c.line("%s ended before it listened on any port.", printable(c.name()))
			}
			return ctx.Err()
		case <-notice.C:
			s.c.line("%s listens on no port yet. It got the port %d, in PORT.", printable(c.name()), wished)
		case <-time.After(wait):
			wait = min(wait*3/2, lookLast)
		}
	}
}

// listensOn is a port that a process or one of its descendants listens on, 0 for none.
// A program that runs as another user shows its port to nobody; where somebody listens
// on the one that was free before, it is that.
func listensOn(pid, wished int) int {
	ports := procinfo.PortsOf(procinfo.Descendants(pid))
	for _, port := range ports {
		if port == wished {
			return port
		}
	}
	if len(ports) > 0 {
		return ports[0]
	}
	if procinfo.Listening(wished).UserID != "" {
		return wished
	}
	return 0
}

// freePort is one that nobody listens on now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no free port is to be had: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// environment is this process's own with the port in it.
func environment(port int) []string {
	var out []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "PORT=") {
			out = append(out, pair)
		}
	}
	return append(out, fmt.Sprintf("PORT=%d", port))
}

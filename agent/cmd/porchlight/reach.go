package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"porchlight/agent/carry"
	"porchlight/agent/doctor"
	"porchlight/agent/local"
	"porchlight/agent/openlink"
	"porchlight/agent/ownersecret"
	"porchlight/agent/procinfo"
	"porchlight/agent/reach"
	"porchlight/control/controlapi"
	"porchlight/internal/commandline"
)

// maxReached is how many connections one command carries at a time.
const maxReached = 256

func reachCommand(c cli) *cobra.Command {
	var listen, ca string
	var stdio, signOut bool
	cmd := &cobra.Command{
		Use:   "reach NAME.HOST",
		Short: "Reach an app that is no web app, like ssh or a database, from this computer",
		Long: `Reach an app that is no web app, like ssh or a database, from this computer: one
that its owner published with --tcp and shared with you.

It listens on this computer, for your own programs and for no page in a browser, and
carries what they say; with --stdio it carries its own input and output. The first time you sign in by your
browser. What is kept of that is good for this app alone. No agent has to run here.`,
		Example: `  porchlight reach db.maya.example -L 5432
  psql -h 127.0.0.1 -p 5432
  ssh -o ProxyCommand='porchlight reach ssh.maya.example --stdio' maya@ssh.maya.example`,
		Args: commandline.Exactly("the address of the app, NAME.HOST"),
	}
	f := cmd.Flags()
	f.StringVarP(&listen, "listen", "L", "127.0.0.1:0", "`[ADDRESS:]PORT` of this computer to listen at, by default any that is free")
	f.BoolVar(&stdio, "stdio", false, "carry input and output, as ssh's ProxyCommand wants it")
	f.BoolVar(&signOut, "sign-out", false, "end what you signed in for")
	f.StringVar(&ca, "ca", "", "file (PEM) with an authority that this computer does not trust")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if stdio && signOut || (stdio || signOut) && f.Changed("listen") {
			return commandline.Usagef("reach takes one of -L, --stdio and --sign-out")
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		host, err := reach.Host(args[0])
		if err != nil {
			return commandline.Usagef("%v", err)
		}
		at, err := loopback(listen)
		if err != nil {
			return err
		}
		app, err := c.reached(host, ca)
		if err != nil {
			return err
		}
		ctx := cmd.Context()
		if signOut {
			if err := app.SignOut(ctx); err != nil && !errors.Is(err, reach.ErrSignIn) {
				return err
			}
			c.line("You are signed out of %s.", host)
			return nil
		}
		if err := app.SignIn(ctx); err != nil {
			return err
		}
		if stdio {
			return app.Carry(ctx, newStandard(os.Stdin, os.Stdout))
		}
		return c.carryAll(ctx, app, host, at)
	}
	return cmd
}

// loopback reads where to listen: nowhere but on this computer.
func loopback(listen string) (string, error) {
	bad := commandline.Usagef("-L is [ADDRESS:]PORT with an address of this computer alone, like 127.0.0.1:5432, and not %q", listen)
	if _, err := strconv.ParseUint(listen, 10, 16); err == nil {
		listen = net.JoinHostPort("127.0.0.1", listen)
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", bad
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	addr, err := netip.ParseAddr(host)
	if _, odd := strconv.ParseUint(port, 10, 16); err != nil || odd != nil || !addr.IsLoopback() {
		return "", bad
	}
	return net.JoinHostPort(addr.String(), port), nil
}

// reached is an app as this person reaches it.
func (c cli) reached(host, ca string) (*reach.App, error) {
	if _, err := readCA(ca); err != nil {
		return nil, err
	}
	if name, _, _ := strings.Cut(host, ":"); ca == "" && strings.HasSuffix(name, ".localhost") {
		if dir, err := c.dataDir(); err == nil { // of an agent of this computer alone
			ca = local.RootCAPath(dir)
		}
	}
	return reach.New(host, reach.Config{
		Transport: controlapi.NewTransport(doctor.Roots(ca)),
		Keep:      []ownersecret.Store{ownersecret.ReachKeychain(host), ownersecret.ReachFile(host)},
		Browse: func(ctx context.Context, address string) error {
			opened, err := openlink.Open(ctx, address)
			if err == nil {
				context.AfterFunc(ctx, opened.Close) // its page is not left behind
			}
			return err
		},
		Tell: func(sentence string) { c.remark("%s", printable(sentence)) },
	}), nil
}

// carryAll carries the connections of this user's programs until ctx ends.
func (c cli) carryAll(ctx context.Context, app *reach.App, host, address string) error {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("%s is not to be had to listen at: %w", address, err)
	}
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	c.line("%s is reached at %s. Ctrl-C ends it.", host, ln.Addr())
	slots := make(chan struct{}, maxReached)
	for {
		slots <- struct{}{}
		conn, err := ln.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			defer func() { <-slots }()
			if !ours(conn) {
				_ = conn.Close()
			} else if err := app.Carry(ctx, reach.NoPages(conn.(*net.TCPConn))); err != nil && ctx.Err() == nil {
				c.remark("%s", printable(err.Error()))
			}
		}()
	}
}

// ours says whether a program of this user, or of root, made a connection. Everybody on this
// computer can connect to a port of it, and whom the app lets in is this person.
func ours(conn net.Conn) bool {
	from, to := conn.RemoteAddr().(*net.TCPAddr).AddrPort(), conn.LocalAddr().(*net.TCPAddr).AddrPort()
	return procinfo.Own(procinfo.CallerUser(from, to).UserID) && procinfo.Stands(conn)
}

// standard is input and output as one connection.
type standard struct {
	*io.PipeReader
	out io.WriteCloser
}

var _ carry.Conn = standard{}

// newStandard reads in by a goroutine of its own: a read of a terminal cannot be ended.
func newStandard(in io.Reader, out io.WriteCloser) standard {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, in)
		_ = w.CloseWithError(err)
	}()
	return standard{r, out}
}

func (s standard) Write(b []byte) (int, error) { return s.out.Write(b) }
func (s standard) CloseWrite() error           { return s.out.Close() }

func (s standard) Close() error {
	_ = s.out.Close() // again, after CloseWrite
	return s.PipeReader.Close()
}

// Package rig has what tests of whole programs begin with: control planes and computers of
// ours, real ones, and the mails that people get from them. It judges nothing.
package rig

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/agent/ownersecret"
	"porchlight/test/programs"
)

// Rig runs the programs of one directory.
type Rig struct {
	Bin string
	Env []string // of whatever runs; nil for this process's
	// Begin starts what goes on running, and has it end in time.
	Begin func(*exec.Cmd) (*programs.Process, error)
}

// In is a rig whose programs end with the test.
func In(t testing.TB, bin string) *Rig {
	return &Rig{Bin: bin, Begin: func(cmd *exec.Cmd) (*programs.Process, error) { return programs.Begin(t, cmd), nil }}
}

// Environ is this process's environment without what leads to computers and desktops of
// others; what they keep of secrets is below config.
func Environ(config string, more ...string) (env []string) {
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "PORCHLIGHT_") && !slices.Contains([]string{"XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"}, name) {
			env = append(env, v)
		}
	}
	return append(append(env, "XDG_CONFIG_HOME="+config), more...)
}

// Command is one that was not started.
func (r *Rig) Command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(r.Bin, program), args...)
	cmd.Env = r.Env
	return cmd
}

// Output runs a command to its end and returns what it printed.
func (r *Rig) Output(program string, args ...string) (string, error) {
	out, err := programs.Output(r.Command(program, args...))
	return string(out), err
}

// Run runs one whose --json is read into a value, or what it prints into none for nil.
func (r *Rig) Run(into any, program string, args ...string) error {
	if into == nil {
		_, err := r.Output(program, args...)
		return err
	}
	out, err := programs.Output(r.Command(program, append(args, "--json")...))
	if err != nil {
		return err
	}
	return json.Unmarshal(out, into)
}

// start begins a program and waits for what it says once it serves.
func (r *Rig) start(ctx context.Context, pattern, program string, args ...string) (p *programs.Process, said []string, err error) {
	if p, err = r.Begin(r.Command(program, args...)); err != nil {
		return nil, nil, err
	}
	if said, err = p.Says(ctx, pattern); err != nil {
		p.Kill()
	}
	return p, said, err
}

// Node is a running porchlight-control.
type Node struct {
	*programs.Process
	Data    string
	AuthURL string
	Listens []string // host:port
	Metrics string   // where its health and metrics are, asked for by --metrics
	DNS     string   // host:port where it answers DNS, asked for by --dns
	rig     *Rig
}

// Node serves a data directory, on a free port unless the flags say where. What did not
// begin to serve has ended, and is returned too.
func (r *Rig) Node(ctx context.Context, data string, flags ...string) (n *Node, err error) {
	args := append([]string{"serve", "--data", data, "--domain", "porch.localhost", "--log-level", "warn", "--grace", "1s"}, flags...)
	if !slices.Contains(flags, "--listen") {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	pattern := `control plane at (\S+), listening on (.+)\n`
	asked := []*string{}
	if n = (&Node{Data: data, rig: r}); slices.Contains(flags, "--dns") {
		pattern += `(?s:.*)DNS for \S+ at (\S+)\n`
		asked = append(asked, &n.DNS)
	}
	if slices.Contains(flags, "--metrics") {
		pattern += `(?s:.*)Metrics and health at (\S+)\n`
		asked = append(asked, &n.Metrics)
	}
	var said []string
	if n.Process, said, err = r.start(ctx, pattern, "porchlight-control", args...); err != nil {
		return n, err
	}
	n.AuthURL, n.Listens = said[1], strings.Fields(said[2])
	for i, field := range asked {
		*field = said[3+i]
	}
	return n, nil
}

// Output runs one of the operator's commands.
func (n *Node) Output(args ...string) (string, error) {
	return n.rig.Output("porchlight-control", append(args, "--data", n.Data)...)
}

// Run is the same with Rig.Run.
func (n *Node) Run(into any, args ...string) error {
	return n.rig.Run(into, "porchlight-control", append(args, "--data", n.Data)...)
}

// Outbox finds the mails that it keeps.
func (n *Node) Outbox() *Mails {
	return Outbox(func(context.Context) (mails []agentapi.Mail, err error) { return mails, n.Run(&mails, "outbox") })
}

// Computer is a running agent.
type Computer struct {
	*programs.Process
	Data    string
	Running agentapi.Running
	rig     *Rig
}

// Computer runs an agent on a data directory and free ports.
func (r *Rig) Computer(ctx context.Context, data string, flags ...string) (c *Computer, err error) {
	args := append([]string{"agent", "--data", data, "--api", "127.0.0.1:0", "--https", "127.0.0.1:0"}, flags...)
	c = &Computer{Data: data, rig: r}
	if c.Process, _, err = r.start(ctx, "Stop with Ctrl-C", "porchlight", args...); err == nil {
		c.Running, err = agentapi.ReadRunning(data)
	}
	return c, err
}

// Output runs one of the owner's commands.
func (c *Computer) Output(args ...string) (string, error) {
	return c.rig.Output("porchlight", append(args, "--data", c.Data)...)
}

// Run is the same with Rig.Run.
func (c *Computer) Run(into any, args ...string) error {
	return c.rig.Run(into, "porchlight", append(args, "--data", c.Data)...)
}

// Clients are an app's and the owner's, who keeps the secret where this process would.
func (c *Computer) Clients(ctx context.Context) (open, owner *agentapi.Client, err error) {
	secret, err := ownersecret.File(c.Data).Get(ctx)
	return agentapi.New(c.Running.API), agentapi.NewOwner(c.Running.OwnerSocket, secret), err
}

// Outbox finds the mails that it keeps while it is on its own.
func (c *Computer) Outbox() *Mails {
	return Outbox(func(context.Context) (mails []agentapi.Mail, err error) { return mails, c.Run(&mails, "outbox") })
}

// Node is the control plane in a computer on its own, for its commands.
func (c *Computer) Node() *Node { return &Node{Data: filepath.Join(c.Data, "control"), rig: c.rig} }

// Authority is the file with what the certificates of a node, or of a computer on its own,
// lead to, and Own what those of a connected computer do.
func Authority(data string) string { return filepath.Join(data, "ca", "root.pem") }
func Own(data string) string       { return filepath.Join(data, "connected-ca", "root.pem") }

// Roots are the certificates in files.
func Roots(files ...string) (*x509.CertPool, error) {
	roots := x509.NewCertPool()
	for _, file := range files {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, errors.New("no certificate is in " + file)
		}
	}
	return roots, nil
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/agent/host"
	"porchlight/agent/local"
	"porchlight/agent/ownersecret"
	"porchlight/internal/commandline"
)

// agentOptions are the flags of `porchlight agent`.
type agentOptions struct {
	local         bool
	https         string
	control       string
	caFile        string
	acmeDirectory string
	onDemand      bool
	firstParty    string
	http          string
	verbose       bool
}

func agentCommand(c cli) *cobra.Command {
	var o agentOptions
	cmd := &cobra.Command{
		Use:        "agent [--local | --control URL]",
		SuggestFor: []string{"start", "serve", "up", "daemon"},
		Short:      "Run Porchlight without the menu bar, until Ctrl-C",
		Long: `Run Porchlight without the menu bar, until Ctrl-C: for servers and SSH.

With --local everything is on this computer: no account, nothing to configure,
and nobody else can reach it. With --control it belongs to the control plane at
that address, once 'porchlight connect' has connected it there. From then on
neither is needed, for the data directory knows. The secret that lets you approve
apps is kept in a file only you can read, and so is the device credential of a
connected computer.

An app that brings Porchlight along starts it with --first-party and its appId,
registers with it, and need not stop it: it stops when its last app has left. If
Porchlight runs already, this says so and ends with success.`,
		Example: `  porchlight agent --local
  porchlight agent --control https://control.example.net`,
		Args: commandline.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runAgent(cmd.Context(), c.location, c.terminal, o) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.local, "local", false, "run the control plane and the relay here too, for this computer alone")
	f.StringVar(&o.https, "https", local.DefaultHTTPS, "with --local: where visitors connect")
	f.StringVar(&o.control, "control", "", "address of the control plane this computer belongs to")
	f.StringVar(&o.caFile, "ca", "", "file (PEM) with the authority of a control plane whose certificate this computer does not trust")
	f.StringVar(&o.acmeDirectory, "acme-directory", "", "ACME directory to order certificates from (default Let's Encrypt; with --ca, this computer makes its own)")
	f.BoolVar(&o.onDemand, "on-demand", false, "stop 10 seconds after the last registered app has left")
	f.StringVar(&o.firstParty, "first-party", "", "appId of the app that brings this Porchlight along; stops like --on-demand")
	f.StringVar(&o.http, "http", "", "ignored")
	_ = f.MarkHidden("http") // it is there
	f.BoolVarP(&o.verbose, "verbose", "v", false, "log everything to standard error")
	return cmd
}

func runAgent(ctx context.Context, where *location, term *terminal, o agentOptions) error {
	if o.http != "" { // of before 0.1.0
		fmt.Fprintln(term.err, "--http is ignored, and can be left out: Porchlight's own code reads what visitors send.")
	}
	cfg, err := o.config(where)
	if err != nil {
		return err
	}
	if ends, err := runsAlready(ctx, where, term, cfg); ends || err != nil {
		return err
	}
	level := slog.LevelWarn
	if o.verbose {
		level = slog.LevelDebug
	}
	running, _, err := newHost(ctx, cfg, level)
	if err != nil {
		// Two apps that bring Porchlight along may start it at the same moment.
		if ends, found := runsAlready(ctx, where, term, cfg); ends || found != nil {
			return found
		}
		return unlessStopped(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- running.Run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-running.Ready():
		greet(term, where, running)
	}
	return <-ended
}

// config is what the options ask for. Without --local and --control the data directory
// says to whom this computer belongs.
func (o agentOptions) config(where *location) (cfg host.Config, err error) {
	if o.local && o.control != "" {
		return cfg, commandline.Usagef("say --local or --control, not both")
	}
	dir, err := where.dataDir()
	if err != nil {
		return cfg, err
	}
	if !o.local && o.control == "" && !host.Connected(dir) {
		if o.local = local.Used(dir); !o.local {
			return cfg, commandline.Usagef("say --local for this computer alone, or --control and the address of a control plane")
		}
	}
	cfg = host.Config{
		DataDir:       dir,
		API:           cmp.Or(where.given(), agentapi.DefaultAddress),
		Local:         o.local,
		HTTPS:         o.https,
		ControlURL:    o.control,
		ACMEDirectory: o.acmeDirectory,
		Mode:          agentapi.ModeHeadless,
		FirstPartyApp: o.firstParty,
		OnDemand:      o.onDemand || o.firstParty != "",
	}
	if o.firstParty != "" {
		cfg.Mode = agentapi.ModeBundled
	}
	cfg.CA, err = readCA(o.caFile)
	return cfg, err
}

// newHost makes an agent without a screen, whose owner secret is in a file.
func newHost(ctx context.Context, cfg host.Config, level slog.Level) (running *host.Host, secret string, err error) {
	if secret, err = fileSecret(ctx, cfg.DataDir); err != nil {
		return nil, "", err
	}
	cfg.OwnerSecretHash = ownersecret.Hash(secret)
	cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	running, err = host.New(ctx, cfg)
	return running, secret, err
}

// runsAlready looks for a Porchlight where this one would be. One that an app
// brings along ends then, with success: the app attaches to the other.
func runsAlready(ctx context.Context, where *location, term *terminal, cfg host.Config) (ends bool, err error) {
	found, err := host.Find(ctx, cfg.DataDir, cfg.API)
	if err != nil || found == nil {
		return false, err
	}
	if cfg.Mode == agentapi.ModeBundled {
		term.line("%s; attach to it at %s", found, found.API)
		return true, nil
	}
	if whose := where.theirs(ctx); whose != nil {
		return false, whose
	}
	return false, fmt.Errorf("%s, at %s. Quit it first, or start this one beside it with other --data and --api", found, found.API)
}

// readCA reads the file of --ca; no file is no authority.
func readCA(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("cannot read the certificate authority of the control plane: %w", err)
	}
	if len(raw) > maxCA {
		return "", fmt.Errorf("%s is too large for a certificate authority", path)
	}
	return string(raw), nil
}

// maxCA is how large a certificate authority's file may be, in bytes: it has to
// fit into a request.
const maxCA = 32 << 10

// unlessStopped is nil for an agent that was told to stop before it was up.
func unlessStopped(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// fileSecret is the owner secret of a computer without a keychain, made the
// first time.
func fileSecret(ctx context.Context, dataDir string) (string, error) {
	return ownersecret.Ensure(ctx, ownersecret.File(dataDir))
}

// greet says where it is and what to type next.
func greet(term *terminal, where *location, running *host.Host) {
	account := running.Account()
	if account.URL == "" {
		term.line(`Porchlight is on, and %s
The loopback API listens on %s.
Stop with Ctrl-C.`, unconnected(running, where), running.API())
		return
	}
	term.line(`Porchlight is on, at %s
The loopback API listens on %s. Next, in another terminal:

  %s
  %s
  %s
`, account.URL, running.API(), where.typed("publish notes --label Notes --port 8000"), where.typed("approve notes"), where.typed("open notes")+printInstead())
	switch root := running.RootCAPath(); {
	case root == "":
	case account.Local:
		term.line(`Browsers warn until they trust %s
To have yours trust it: %s`, root, where.typed("trust"))
	default:
		term.line(`This control plane brought its own certificate authority, so this computer makes
its own certificates too. Every visitor's browser warns until it trusts
%s
(start with --acme-directory to order them from an authority of yours).`, root)
	}
	term.line("Stop with Ctrl-C.")
}

// typed is a command of this program for the same data directory, as a shell takes it.
func (l *location) typed(format string, args ...any) string {
	self := "porchlight"
	if strings.ContainsRune(os.Args[0], filepath.Separator) {
		self = argument(os.Args[0]) // not on the path
	}
	return self + " " + fmt.Sprintf(format, args...) + l.suffix()
}

// suffix is what a command for the same data directory ends with.
func (l *location) suffix() string {
	if l.data == "" {
		return ""
	}
	return " --data " + argument(l.data)
}

// printInstead is the flag open needs where it has no browser to open.
func printInstead() string {
	if runtime.GOOS == "linux" && os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return " --print"
	}
	return ""
}

// unconnected says what is missing before this computer has an address.
func unconnected(running *host.Host, where *location) string {
	if !running.Connected() {
		return "waits to be connected. In another terminal, type: " + where.typed("connect %s", running.ControlURL())
	}
	return "looks for its control plane; its address is known once that has answered."
}

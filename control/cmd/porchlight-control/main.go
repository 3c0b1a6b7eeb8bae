// Command porchlight-control is the server side of Porchlight: control plane and
// relay in one process, for whoever runs the service, and the commands to
// administer it.
//
// Exit codes: 0 done, 1 refused, 2 usage, 3 there is no control plane.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"porchlight/control/admin"
	"porchlight/control/serve"
	"porchlight/internal/commandline"
)

// Version is set when the program is built for release.
var Version = ""

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], terminal{os.Stdout, os.Stderr}))
}

// terminal is where a command prints: results to out, remarks to err.
type terminal struct{ out, err io.Writer }

// run is the whole program; the tests call it.
func run(ctx context.Context, args []string, term terminal) int {
	return commandline.Program{Root: newRoot(term), Out: term.out, Err: term.err, NotRunning: admin.ErrNotRunning}.Run(ctx, args)
}

func newRoot(term terminal) *cobra.Command {
	root := &cobra.Command{
		Use:   "porchlight-control",
		Short: "Run a Porchlight control plane and relay, and administer it",
		Long: `Run a Porchlight control plane and relay, and administer it.

The commands find the server of a data directory (--data) through the socket in
it, and open the store themselves when none runs there; with nothing but a
database, name it (--postgres) and the domain. The control plane of a local agent
is in the directory "control" of the agent's data.

Exit codes: 0 done, 1 refused, 2 the command line is not right, 3 there is no
control plane.`,
		Example: `  porchlight-control serve --data /var/lib/porchlight --domain porch.example --listen :443
  porchlight-control account add anna@example.net --data /var/lib/porchlight
  porchlight-control client add --name "Pocket Notes" --redirect-uri https://notes.example/cb --data /var/lib/porchlight
  porchlight-control backup /var/backups/porchlight.backup --data /var/lib/porchlight`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          commandline.NoCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(commandline.FlagError)
	root.AddCommand(
		serveCommand(term),
		accountCommand(term), computerCommand(term), oauthClientCommand(term), keyCommand(term), sealKeyCommand(term), outboxCommand(term), caCommand(term),
		searchCommand(term), usageCommand(term), nodesCommand(term), limitsCommand(term),
		auditCommand(term), operatorCommand(term), tokenCommand(term), suspendCommand(term), resumeCommand(term), suspensionsCommand(term),
		backupCommand(term, false), restoreCommand(term, false), backupCommand(term, true), restoreCommand(term, true),
		newLineCommand(term), upgradeCommand(term), checkCommand(term), versionCommand(term), commandline.Licenses(term.out),
	)
	commandline.AddManual(root)
	return root
}

func version() string {
	if Version != "" {
		return Version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return s.Value[:12]
			}
		}
	}
	return serve.Unnamed
}

func versionCommand(term terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print which version this is",
		Args:  commandline.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(term.out, version())
			return err
		},
	}
}

// group is a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  commandline.NoCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

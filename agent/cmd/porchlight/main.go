// Command porchlight is Porchlight without a screen: the command line over the
// loopback API, and the agent itself for servers and SSH.
//
// Exit codes: 0 done, 1 refused, 2 usage, 3 the agent is not running.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"porchlight/agent"
	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], newTerminal(os.Stdout, os.Stderr)))
}

// run is the whole program; the tests call it.
func run(ctx context.Context, args []string, term *terminal) int {
	return commandline.Program{
		Root: newRoot(term), Out: term.out, Err: term.err, NotRunning: agentapi.ErrNotRunning, Sentence: sentence,
	}.Run(ctx, args)
}

// sentence is what a person reads: an error of the agent, and where nothing listens
// or a name was mistyped, what to type next.
func sentence(err error) string {
	if errors.Is(err, agentapi.ErrNotRunning) {
		where := "."
		if _, looked, ok := strings.Cut(err.Error(), agentapi.ErrNotRunning.Error()+": "); ok {
			where = ": " + looked + "."
		}
		return "Porchlight is not running here" + where + " Start it from your applications menu, or type: porchlight agent --local"
	}
	if errors.Is(err, context.Canceled) {
		return "Stopped before it was done."
	}
	if agentapi.IsNoApp(err) {
		return err.Error() + " See: porchlight apps"
	}
	return err.Error()
}

func newRoot(term *terminal) *cobra.Command {
	var where location
	c := cli{&where, term}
	root := &cobra.Command{
		Use:   "porchlight",
		Short: "Open the apps on this computer, at an address of yours, to exactly the people you choose",
		Long: `Open the apps on this computer, at an address of yours, to exactly the people you
choose.

A command ends with 0 when it is done, 1 when it was refused, 2 when the line makes
no sense as it was written, and 3 when Porchlight is not running.`,
		Example: `  porchlight share 3000                 put a local port at an address until Ctrl-C
  porchlight agent --local              or stay: on this computer alone,
  porchlight publish notes --port 8000  ask for an address,
  porchlight approve notes              say yes,
  porchlight open notes                 and open it in your browser`,
		Version:       agent.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          commandline.NoCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(commandline.FlagError)
	root.PersistentFlags().StringVar(&where.data, "data", "", "data directory (environment PORCHLIGHT_DATA, else "+agent.DefaultDataDir()+")")
	root.PersistentFlags().StringVar(&where.api, "api", "", "address of the loopback API (environment PORCHLIGHT_API, else what the data directory says, else "+agentapi.DefaultAddress+")")
	root.AddGroup(
		&cobra.Group{ID: "apps", Title: "Apps:"},
		&cobra.Group{ID: "owner", Title: "Deciding, as the owner:"},
		&cobra.Group{ID: "self", Title: "Porchlight itself:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("apps", reachCommand(c), shareCommand(c), runCommand(c), listeningCommand(c), publishCommand(c), unpublishCommand(c), appsCommand(c), mcpCommand(c))
	add("owner", approveCommand(c), denyCommand(c), unmuteCommand(c), stopCommand(c), revokeCommand(c), openCommand(c), assistCommand(c), unshareCommand(c), outboxCommand(c))
	add("owner", pauseCommand(c), resumeCommand(c), darkCommand(c), optionsCommand(c), activityCommand(c), requestsCommand(c), settingsCommand(c))
	add("owner", peopleCommand(c), groupsCommand(c), knocksCommand(c), grantsCommand(c), passwordsCommand(c), devicesCommand(c), sendersCommand(c), domainCommand(c), usersCommand(c), noticesCommand(c), identityKeyCommand(c), exportCommand(c))
	add("self", agentCommand(c), statusCommand(c), engineCommand(c), connectCommand(c), disconnectCommand(c), accountCommand(c))
	add("self", doctorCommand(c), trustCommand(c), upgradeCommand(c), uninstallCommand(c), commandline.Licenses(term.out))
	complete(root, &where)
	commandline.AddManual(root)
	return root
}

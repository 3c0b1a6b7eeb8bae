package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/agent/export"
	"porchlight/internal/commandline"
)

// saved is what export prints once it has written FILE.
type saved struct {
	OK   bool   `json:"ok"`
	File string `json:"file"`
}

func exportCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Write down everything that is kept for you, as JSON",
		Long: `Write down everything that is kept for you, as JSON: account, apps and their
options, people, connected apps, activity and settings. No secret is in it, but
names and addresses are: FILE can be read by you alone. A FILE that exists is
replaced. Without one the export goes to the standard output.`,
		Example: `  porchlight export porchlight.json
  porchlight export | jq '.people[].email'`,
		Args: commandline.AtMost("the FILE"),
	}
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, args []string) (any, error) {
		all, err := export.Gather(ctx, client, time.Now())
		if err != nil || len(args) == 0 {
			return all, err
		}
		return saved{true, args[0]}, all.Save(args[0])
	}, func(result any, _ []string) error {
		if file, ok := result.(saved); ok {
			c.line("Saved as %s.", file.File)
			return nil
		}
		return c.json(result)
	})
}

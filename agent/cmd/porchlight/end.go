package main

import (
	"context"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

// endCommand is a verb that ends access to an app and says how much it closed.
func endCommand(where *location, term *terminal, use, short string,
	end func(*agentapi.Client, context.Context, string) (agentapi.Closed, error), said string,
) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  commandline.Exactly("the NAME of the app"),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := where.owner(cmd.Context())
			if err != nil {
				return err
			}
			closed, err := end(client, cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return term.json(closed)
			}
			term.line(said, args[0])
			if closed.Closed > 0 {
				term.line("Open connections closed: %d, in %d ms.", closed.Closed, closed.Milliseconds)
			}
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"porchlight/control"
	"porchlight/control/admin"
	"porchlight/internal/commandline"
)

func computerCommand(term terminal) *cobra.Command {
	list := listCommand(term, "List the computers", (*admin.Client).Computers,
		"No computer is connected yet. On a computer, type: porchlight connect URL", []string{"NAME", "OWNER", "ADDRESS", "SINCE"},
		func(c control.OwnedComputer) []string {
			return []string{c.Name, c.Owner, c.URL, c.CreatedAt.Format(time.DateOnly)}
		})
	return group("computer", "Computers of the accounts", list, computerDisconnectCommand(term), computerRemoveCommand(term))
}

func computerDisconnectCommand(term terminal) *cobra.Command {
	cmd := clientCommand("disconnect NAME", "End a computer's credential; its name and people are kept", commandline.Exactly("the NAME of a computer"),
		func(ctx context.Context, c *admin.Client, args []string) error {
			if err := c.DisconnectComputer(ctx, args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintln(term.err, "The computer is disconnected. Its owner can connect it, or another one, under the same name.")
			return err
		})
	cmd.Long = `End a computer's device credential: for one that was lost or stolen. Its tunnel
is closed at once. The short name, the people and what they were given are kept
until the owner connects a computer under that name again.`
	return cmd
}

func computerRemoveCommand(term terminal) *cobra.Command {
	cmd := clientCommand("remove NAME", "Take a computer away with its people", commandline.Exactly("the NAME of a computer"),
		func(ctx context.Context, c *admin.Client, args []string) error {
			if err := c.RemoveComputer(ctx, args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintln(term.err, "The computer is removed. Its name is kept back for its former account for 90 days; then anybody can choose it.")
			return err
		})
	cmd.Long = `Take a computer away: its credential ends, its tunnel is closed, and with it go
the people who could reach it and the apps they let in. This cannot be undone.
Its short name is kept back for its former account for 90 days; after that anybody
can choose it.`
	return cmd
}

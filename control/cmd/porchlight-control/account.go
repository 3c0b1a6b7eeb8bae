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

func accountCommand(term terminal) *cobra.Command {
	return group("account", "Who can sign in", accountAddCommand(term), accountListCommand(term), accountRemoveCommand(term))
}

func accountAddCommand(term terminal) *cobra.Command {
	var asJSON bool
	var short string
	cmd := clientCommand("add EMAIL", "Make an account, and with --short a computer of it", commandline.Exactly("an EMAIL"),
		func(ctx context.Context, c *admin.Client, args []string) error {
			added, err := c.AddAccount(ctx, admin.AddAccount{Email: args[0], Short: short})
			if err != nil {
				return err
			}
			if asJSON {
				return term.json(added)
			}
			if added.New {
				fmt.Fprintf(term.out, "%s can sign in now.\n", added.Email)
			} else {
				fmt.Fprintf(term.out, "%s could sign in already.\n", added.Email)
			}
			if added.Computer != nil {
				fmt.Fprintf(term.out, "Computer: %s\n", added.Computer.URL)
			}
			if added.Credential != "" {
				fmt.Fprintf(term.out, "Its device credential, shown this once: %s\n", added.Credential)
			}
			return nil
		})
	cmd.Long = `Make an account, which can sign in and connect computers.

With --short a computer of that name is made too, and the device credential with
which it can speak for itself is printed, this once. Without it the account's
owner connects a computer with porchlight connect. Repeated, the command changes
nothing.`
	cmd.Example = `  porchlight-control account add anna@example.net --data /var/lib/porchlight`
	cmd.Flags().StringVar(&short, "short", "", "also make a computer with this short name")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func accountListCommand(term terminal) *cobra.Command {
	return listCommand(term, "List the accounts", (*admin.Client).Accounts,
		"Nobody can sign in yet. Add somebody: porchlight-control account add EMAIL", []string{"EMAIL", "ID", "SINCE"},
		func(a control.Account) []string { return []string{a.Email, a.ID, a.CreatedAt.Format(time.DateOnly)} })
}

func accountRemoveCommand(term terminal) *cobra.Command {
	return doneCommand(term, "remove EMAIL", "Take an account away with its computers and everything it can reach", "an EMAIL",
		(*admin.Client).RemoveAccount, "The account is removed. What it could open closes within seconds.",
		`Take an account away: its sessions end, its computers are removed with everybody's
access to them, what others shared with it is taken back, and apps it let in are
thrown out. This cannot be undone. Invited again, the address gets another
account. The names of its computers are kept back for 90 days; until then only an
account of the same address can take them.`)
}

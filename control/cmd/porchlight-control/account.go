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
	return group("account", "Who can sign in", accountAddCommand(term), accountListCommand(term), accountShowCommand(term), accountRemoveCommand(term), accountRecoverCommand(term))
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

func accountRecoverCommand(term terminal) *cobra.Command {
	var asJSON bool
	cmd := clientCommand("recover EMAIL", "Remove the passkeys that somebody lost, after 72 hours, and let mail sign them in", commandline.Exactly("an EMAIL"),
		func(ctx context.Context, c *admin.Client, args []string) error {
			began, err := c.RecoverAccount(ctx, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return term.json(began)
			}
			fmt.Fprintf(term.out, "The passkeys of %s are removed on %s, and mail signs in from then on, unless they stop it. They were told by mail.\n", began.Email, began.Until.Local().Format("2 January, 15:04"))
			return nil
		})
	cmd.Long = `Remove the passkeys and recovery codes of an account whose person has lost them,
and let mail sign in, also where they had turned that off. As long as the passkeys
are there, no mail lets them add another.

They are told by mail at once, with a link that stops it, and again when it has
taken effect, 72 hours later. Signing in with a passkey stops it, too. Asked
again, it goes on waiting. Who has a connected computer needs no operator:
porchlight account recover.`
	jsonFlag(cmd, &asJSON)
	return cmd
}

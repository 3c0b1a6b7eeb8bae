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

func suspendCommand(term terminal) *cobra.Command {
	cmd := actCommand(term, "suspend KIND ID --reason TEXT", "End what an account, computer, client, address or domain may, until it is resumed",
		(*admin.Client).Suspend, "%s %s is suspended. What it has open ends within ten seconds.\n")
	cmd.Long = `End what somebody may, until porchlight-control resume. Nothing is deleted.

An account (its id or mail address) signs in nowhere, is let in nowhere and its
computers are forwarded nothing; so is everybody of a mail address or a domain of
mail addresses, with those that have no account yet. A computer (its id or short
name) is forwarded nothing. A client (its client_id) gets no tokens, and those it
has open nothing.

Computers are told, end their sessions and say who ended it and whom to ask
(serve --abuse-contact). Ten seconds later the relay cuts, obeyed or not.`
	cmd.Example = `  porchlight-control suspend account lena@example.com --reason "Complaint 2211" --data /var/lib/porchlight`
	return cmd
}

func resumeCommand(term terminal) *cobra.Command {
	return actCommand(term, "resume KIND ID", "Take a suspension back", (*admin.Client).Resume,
		"%s %s is resumed, with all it had.\n")
}

// actCommand is a command that suspends or resumes.
func actCommand(term terminal, use, short string, act func(*admin.Client, context.Context, admin.Suspend) (control.Suspension, error), done string) *cobra.Command {
	var asJSON bool
	var ask admin.Suspend
	cmd := clientCommand(use, short, commandline.Exactly("a KIND (account, computer, client, address or domain)", "an ID"), func(ctx context.Context, c *admin.Client, args []string) error {
		ask.Kind, ask.ID = control.SuspensionKind(args[0]), args[1]
		it, err := act(c, ctx, ask)
		if err != nil {
			return err
		}
		if asJSON {
			return term.json(it)
		}
		fmt.Fprintf(term.out, done, it.Kind, it.Name)
		return nil
	})
	cmd.Flags().StringVar(&ask.Reason, "reason", "", "why, for whoever looks later")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func suspensionsCommand(term terminal) *cobra.Command {
	cmd := listCommand(term, "List what is suspended", (*admin.Client).Suspensions,
		"Nothing is suspended.", []string{"KIND", "NAME", "ID", "SINCE", "REASON"},
		func(s control.Suspension) []string {
			return []string{string(s.Kind), s.Name, s.ID, s.At.Format(time.DateTime), s.Reason}
		})
	cmd.Use = "suspensions"
	return cmd
}

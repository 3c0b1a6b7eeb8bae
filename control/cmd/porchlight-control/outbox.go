package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"porchlight/control/admin"
	"porchlight/control/mail"
	"porchlight/internal/commandline"
	"porchlight/internal/oneline"
)

// outboxCommand shows mails: those kept here, and those that did not arrive.
func outboxCommand(term terminal) *cobra.Command {
	var asJSON, waiting, failed bool
	cmd := clientCommand("outbox", "Read the mails that nobody delivers, or list those that did not arrive", commandline.Exactly(),
		func(ctx context.Context, c *admin.Client, _ []string) error {
			switch {
			case waiting:
				return term.waitingMails(ctx, c, asJSON)
			case failed:
				return term.failedMails(ctx, c, asJSON)
			default:
				return term.outbox(ctx, c, asJSON)
			}
		})
	cmd.Long = `Read the mails that nobody delivers, newest first.

A control plane without a mail server (serve --smtp) keeps the last 200 mails
for 7 days. Links in them sign people in: treat them like passwords.

With a mail server there is nothing to read here; --waiting lists what it has
not taken yet, and --failed what was given up in the last 7 days, because the
server refused it or did not take it in time.`
	cmd.Flags().BoolVar(&waiting, "waiting", false, "list the mails that are still to be delivered")
	cmd.Flags().BoolVar(&failed, "failed", false, "list the mails that were given up")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if waiting && failed {
			return commandline.Usagef("outbox takes --waiting or --failed, not both")
		}
		return nil
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (t terminal) outbox(ctx context.Context, c *admin.Client, asJSON bool) error {
	list, err := c.Outbox(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return t.json(list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(t.err, "No mail is kept here. With a mail server, see --waiting and --failed.")
		return err
	}
	for _, m := range list {
		fmt.Fprintf(t.out, "To: %s\nSubject: %s\nDate: %s\n\n%s\n\n", oneline.Printable(m.To), oneline.Printable(m.Subject), m.At.Format(time.RFC1123Z), m.Text)
	}
	return nil
}

func (t terminal) waitingMails(ctx context.Context, c *admin.Client, asJSON bool) error {
	list, err := c.WaitingMails(ctx)
	return show(t, list, err, asJSON, "No mail waits.", []string{"TO", "SUBJECT", "WRITTEN", "TRIES", "NEXT"}, func(m mail.Waiting) []string {
		return []string{m.To, m.Subject, stamp(m.At), strconv.Itoa(m.Tries), stamp(m.Next)}
	})
}

func (t terminal) failedMails(ctx context.Context, c *admin.Client, asJSON bool) error {
	list, err := c.FailedMails(ctx)
	return show(t, list, err, asJSON, "No mail was given up in the last 7 days.", []string{"TO", "SUBJECT", "GIVEN UP", "WHY", "TRIES"}, func(m mail.Failure) []string {
		return []string{m.To, m.Subject, stamp(m.FailedAt), why(m), strconv.Itoa(m.Tries)}
	})
}

// why says in a few words what became of a mail.
func why(f mail.Failure) string {
	text := "not taken in time"
	if f.Reason == mail.ReasonRefused {
		text = "refused"
	}
	if f.Code != 0 {
		text += fmt.Sprintf(" (%d)", f.Code)
	}
	return text
}

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05Z") }

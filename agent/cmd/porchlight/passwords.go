package main

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func passwordsCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "passwords",
		Short: "Make, list and revoke passwords for programs that are no browsers",
		Long: `Make, list and revoke app passwords: with one, a program that is no browser (git, a
calendar, a backup) opens one app in one person's name. What is made here is for
the owner; others make theirs on the page of their account.`,
		Example: `  porchlight passwords
  porchlight passwords add git --name laptop
  porchlight passwords revoke ID`,
	}
	cmd.AddCommand(addPasswordCommand(c), revokePasswordCommand(c))
	return listCommand(c, cmd, "List everybody's app passwords, newest first", (*agentapi.Client).Passwords, c.printPasswords)
}

func addPasswordCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add APP --name NAME",
		Short: "Make a password for one app, for yourself",
		Long: `Make a password for one app, for yourself. It is shown once, and not kept: make a
new one for each program, and revoke the one of a program you no longer use.`,
		Example: "  porchlight passwords add git --name laptop",
		Args:    commandline.Exactly("the APP, by its name, label or address"),
	}
	name := cmd.Flags().String("name", "", "what to call it, to tell it from others")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if strings.TrimSpace(*name) == "" {
			return commandline.Usagef("%s needs --name, what to call the password", cmd.CommandPath())
		}
		return nil
	}
	var email, url string
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, args []string) (agentapi.MadePassword, error) {
		apps, state, err := appsCalled(ctx, client, args[0])
		if err != nil {
			return agentapi.MadePassword{}, err
		}
		email, url = state.Account.Email, apps[0].URL
		// The agent takes a name before a label, which another app may have as its name.
		return client.MakePassword(ctx, agentapi.PasswordRequest{App: apps[0].Name, Name: *name})
	}, func(made agentapi.MadePassword, _ []string) error {
		c.printPassword(made, email, url)
		return nil
	})
}

// printPassword says how to use an app password that was just made.
func (t *terminal) printPassword(made agentapi.MadePassword, email, url string) {
	t.line("password:  %s", made.Password)
	if email != "" {
		t.line("user name: %s", printable(email))
	}
	if url != "" {
		t.line("address:   %s", url)
	}
	url = cmp.Or(url, "https://…")
	t.remark("It is shown only this once. Give it to one program, with the user name above. For example:")
	t.remark("  git clone %s/project.git", url)
	t.remark("  a calendar: server %s, by CalDAV", url)
	t.remark("  a program that has custom headers: X-Porchlight-Key, with the password alone")
	t.remark("It opens this app alone, until: porchlight passwords revoke %s", made.ID)
}

func revokePasswordCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "revoke ID",
		Short:   "End an app password, whosever it is, at once",
		Example: "  porchlight passwords revoke ID",
		Args:    commandline.Exactly("the ID of the app password"),
	}
	return ownerCommand(c, cmd, of((*agentapi.Client).RevokePassword), func(closed agentapi.Closed, args []string) error {
		c.revoked("Revoked", "an app password", args[0], closed)
		return nil
	})
}

func (t *terminal) printPasswords(all []agentapi.AppPassword) error {
	const none = "No app passwords yet. Try: porchlight passwords add APP --name laptop"
	return list(t, none, []string{"NAME", "APP", "FOR", "SINCE", "ID"}, all, func(p agentapi.AppPassword) []string {
		return []string{p.Name, p.AppName, p.Email, madeAt(p.CreatedAt), p.ID}
	})
}

// madeAt is a moment that may not be known.
func madeAt(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return moment(at)
}

package main

import (
	"context"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
)

// accountShown is what account prints with --json: the account alone, although
// people are told more of the state.
type accountShown struct {
	agentapi.Account
	state agentapi.OwnerState
}

func accountCommand(c cli) *cobra.Command {
	cmd := verb("account", "Show whose computer this is and where it is connected")
	cmd.AddCommand(recoverCommand(c))
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, _ []string) (accountShown, error) {
		state, err := client.State(ctx)
		return accountShown{state.Account, state}, err
	}, func(shown accountShown, _ []string) error {
		sayAccount(c.terminal, shown.state)
		return nil
	})
}

func recoverCommand(c cli) *cobra.Command {
	cmd := verb("recover", "Sign in to your account from this computer, where you lost your passkeys")
	cmd.Long = `Open your account in your browser, signed in as strongly as by a recovery code:
for an owner who lost their passkeys. You are told by mail.

The link works once, for 15 minutes. With --print it is printed instead of
opened: whoever has it first is you there, so do not pass it on.`
	printOnly := cmd.Flags().Bool("print", false, "print the link instead of opening it")
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, _ []string) (agentapi.OpenLink, error) {
		return client.RecoverAccount(ctx)
	}, func(link agentapi.OpenLink, args []string) error { return openOrPrint(c, cmd, link, args, *printOnly) })
}

// sayAccount is for people.
func sayAccount(term *terminal, state agentapi.OwnerState) {
	account := state.Account
	switch {
	case account.Connected:
		term.line("%s, at %s", printable(account.Email), account.URL)
	case account.AuthURL != "" && account.URL != "":
		term.line("Not connected to an account; it was %s", account.URL)
	default:
		term.line("Not connected to an account")
	}
	if account.AuthURL != "" {
		term.line("Control plane: %s", account.AuthURL)
	}
	if account.Local {
		term.line("Everything runs on this computer; nobody else can reach it.")
	}
	if state.Trouble != "" {
		term.line("%s", state.Trouble)
	}
	if c := state.Connecting; c != nil && c.State == agentapi.ConnectWaiting {
		term.line("Waiting to be connected to %s: compare the code %s at %s", c.AuthURL, printable(c.UserCode), printable(c.VerificationURL))
	}
}

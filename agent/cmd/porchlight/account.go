package main

import (
	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func accountCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "account",
		Short: "Show whose computer this is and where it is connected",
		Args:  commandline.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := where.owner(cmd.Context())
			if err != nil {
				return err
			}
			state, err := client.State(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return term.json(state.Account)
			}
			sayAccount(term, state)
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
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

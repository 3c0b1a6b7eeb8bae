package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/agent/host"
	"porchlight/agent/trust"
)

func trustCommand(c cli) *cobra.Command {
	var said string
	cmd := &cobra.Command{
		Use:   "trust",
		Short: "Have your browsers trust the certificates this computer makes itself",
		Long: `Have your browsers on this computer trust the certificates it makes itself, so
that they do not warn. The authority behind them can speak for names of this
computer only. Your own stores of certificates are changed, no others.

With --undo it is taken out of them again.`,
		Example: `  porchlight trust
  porchlight trust --undo`,
	}
	undo := cmd.Flags().Bool("undo", false, "take it out again")
	return command(c, cmd, func(ctx context.Context, _ []string) (agentapi.Done, error) {
		authority, err := ownAuthority(c)
		if err != nil {
			return agentapi.Done{}, cmp.Or(c.theirs(ctx), err)
		}
		if *undo {
			said = "Your browsers do not trust " + authority.Path + " any more."
			return done(authority.Distrust(ctx))
		}
		said = "Your browsers trust " + authority.Path + " now. One that is open has to be started again."
		return done(authority.Trust(ctx))
	}, func(agentapi.Done, []string) error {
		c.line("%s", said)
		return nil
	})
}

// sayWarning prints how browsers here stop to warn of this computer's addresses, unless
// they are known to trust it.
func sayWarning(ctx context.Context, c cli) {
	authority, err := ownAuthority(c)
	if err != nil {
		return // its certificates are public ones
	}
	if yes, err := authority.Trusted(ctx); err != nil || !yes {
		c.line("Browsers here warn of the address until they trust this computer: %s", c.typed("trust"))
	}
}

// ownAuthority is the authority that this computer's certificates are from.
func ownAuthority(c cli) (*trust.Authority, error) {
	dir, err := c.dataDir()
	if err != nil {
		return nil, err
	}
	return host.OwnAuthority(dir)
}

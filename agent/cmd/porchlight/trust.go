package main

import (
	"context"
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/agent/host"
	"porchlight/agent/trust"
	"porchlight/internal/commandline"
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
		Args: commandline.Exactly(),
	}
	undo := cmd.Flags().Bool("undo", false, "take it out again")
	return command(c, cmd, func(ctx context.Context, _ []string) (agentapi.Done, error) {
		dir, err := c.dataDir()
		if err != nil {
			return agentapi.Done{}, err
		}
		authority, err := ownAuthority(dir)
		if err != nil {
			return agentapi.Done{}, err
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

// errIssued is for a computer whose certificates come from an authority that
// browsers know.
var errIssued = errors.New("this computer's certificates are issued by an authority, so there is nothing of its own to trust")

// ownAuthority is the authority of the certificates this computer makes itself.
func ownAuthority(dataDir string) (*trust.Authority, error) {
	kept, err := host.AuthoritiesOf(dataDir)
	if err != nil {
		return nil, err
	}
	if kept.Root == "" {
		return nil, errIssued
	}
	authority, err := trust.Open(kept.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("this computer has no certificate authority yet: starting Porchlight once, with 'porchlight agent --local', makes one")
	}
	return authority, err
}

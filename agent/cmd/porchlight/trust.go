package main

import (
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/agent/host"
	"porchlight/agent/trust"
	"porchlight/internal/commandline"
)

func trustCommand(where *location, term *terminal) *cobra.Command {
	var asJSON, undo bool
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := where.dataDir()
			if err != nil {
				return err
			}
			authority, err := ownAuthority(dir)
			if err != nil {
				return err
			}
			change, said := authority.Trust, "Your browsers trust %s now. One that is open has to be started again."
			if undo {
				change, said = authority.Distrust, "Your browsers do not trust %s any more."
			}
			if err := change(cmd.Context()); err != nil {
				return err
			}
			if asJSON {
				return term.json(agentapi.Done{OK: true})
			}
			term.line(said, authority.Path)
			return nil
		},
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "take it out again")
	jsonFlag(cmd, &asJSON)
	return cmd
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

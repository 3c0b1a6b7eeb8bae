package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func identityKeyCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "identity-key",
		Short: "Print the keys by which apps check who their visitor is",
		Long: `Print the keys that verify X-Service-Token, which apps with the option
--identity-token get: a JWK Set, as it is at /.porchlight/jwks.json of each of your
addresses.

With --rotate a new key is made. It signs ten minutes later, and the one before it
stays in the set for ten minutes more, so that nobody notices. After a leak add
--now: the new one signs at once, and the others end.`,
		Example: `  porchlight identity-key > keys.json
  porchlight identity-key --rotate`,
		Args: commandline.Exactly(),
	}
	rotate := cmd.Flags().Bool("rotate", false, "make a new key")
	now := cmd.Flags().Bool("now", false, "with --rotate, after a leak: end the former keys at once")
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, _ []string) (json.RawMessage, error) {
		switch {
		case *rotate:
			return client.RotateIdentityKey(ctx, agentapi.RotateKey{Now: *now})
		case *now:
			return nil, commandline.Usagef("--now needs --rotate")
		}
		return client.IdentityKey(ctx)
	}, func(set json.RawMessage, _ []string) error { return c.json(set) })
}

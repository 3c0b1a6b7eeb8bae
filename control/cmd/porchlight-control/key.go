package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"porchlight/control"
	"porchlight/control/admin"
	"porchlight/internal/commandline"
)

// keyCommand is "key": what signs access tokens.
func keyCommand(term terminal) *cobra.Command {
	return group("key", "The key that signs access tokens", keyListCommand(term), keyRotateCommand(term))
}

func keyListCommand(term terminal) *cobra.Command {
	var asJSON bool
	cmd := clientCommand("list", "List the keys whose tokens are accepted, newest first", commandline.Exactly(),
		func(ctx context.Context, c *admin.Client, _ []string) error {
			list, err := c.Keys(ctx)
			if err != nil {
				return err
			}
			return term.keys(list, asJSON)
		})
	jsonFlag(cmd, &asJSON)
	return cmd
}

func keyRotateCommand(term terminal) *cobra.Command {
	var asJSON bool
	cmd := clientCommand("rotate", "Make a new key; tokens of the old one stay valid until they end", commandline.Exactly(),
		func(ctx context.Context, c *admin.Client, _ []string) error {
			list, err := c.RotateKey(ctx)
			if err != nil {
				return err
			}
			return term.keys(list, asJSON)
		})
	cmd.Long = `Make a new signing key.

It is made known to computers at once and signs two minutes later, when every
one of them has heard of it. Tokens signed with the old key are accepted for
another 720 seconds, so nobody notices. While a rotation is under way another
one is refused.`
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (t terminal) keys(list []control.Key, asJSON bool) error {
	if asJSON {
		return t.json(list)
	}
	var rows [][]string
	for _, k := range list {
		state := "verifies"
		if k.Signs {
			state = "signs"
		} else if k.VerifiesUntil.IsZero() {
			state = "made known"
		}
		until := "-"
		if !k.VerifiesUntil.IsZero() {
			until = k.VerifiesUntil.UTC().Format(time.RFC3339)
		}
		rows = append(rows, []string{state, k.SignsFrom.UTC().Format(time.RFC3339), until})
	}
	return commandline.PrintTable(t.out, []string{"STATE", "SIGNS FROM", "ACCEPTED UNTIL"}, rows)
}

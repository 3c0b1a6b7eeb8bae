package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"porchlight/control"
	"porchlight/control/admin"
	"porchlight/internal/commandline"
)

// keyCommand is "key": what signs access tokens, and what nodes and cookies are known by.
func keyCommand(term terminal) *cobra.Command {
	return group("key", "The keys that sign access tokens, and that nodes and cookies are known by", keyListCommand(term), keyRotateCommand(term))
}

func keyListCommand(term terminal) *cobra.Command {
	return listCommand(term, "List the keys whose tokens are accepted, newest first", (*admin.Client).Keys, "", keyHeader, keyRow)
}

func keyRotateCommand(term terminal) *cobra.Command {
	var asJSON, now bool
	cmd := clientCommand("rotate", "Make new keys; those before go on until everybody knows the new ones", commandline.Exactly(),
		func(ctx context.Context, c *admin.Client, _ []string) error {
			list, err := c.RotateKey(ctx, now)
			return show(term, list, err, asJSON, "", keyHeader, keyRow)
		})
	cmd.Long = `Make a new signing key, and a new secret that cookies are sealed with and nodes
know each other by.

Both are made known at once and used two minutes later, when every computer and
every node has heard of them, so nobody notices. Tokens signed with the old key
are accepted for another 720 seconds. The old secret ends ten minutes after this
command. While a rotation is under way another one is refused.

With --now, after a leak, the old ones end at once instead: a copy of the store
is refused at every port. Clients of apps refresh their tokens, sign-ins that are
half done begin again, and nodes do not know each other until each has read the
new secret, some seconds later. What a leak takes besides, and what to type
first, is in docs/operating.md, "After a leak". The key of --seal-key is not in
the store and stays: it has steps of its own there.`
	cmd.Flags().BoolVar(&now, "now", false, "end the old keys at once, after a leak")
	jsonFlag(cmd, &asJSON)
	return cmd
}

var keyHeader = []string{"STATE", "SIGNS FROM", "ACCEPTED UNTIL"}

func keyRow(k control.Key) []string {
	state, until := "verifies", "-"
	if !k.VerifiesUntil.IsZero() {
		until = k.VerifiesUntil.UTC().Format(time.RFC3339)
	}
	switch {
	case k.Signs:
		state = "signs"
	case k.VerifiesUntil.IsZero():
		state = "made known"
	}
	return []string{state, k.SignsFrom.UTC().Format(time.RFC3339), until}
}

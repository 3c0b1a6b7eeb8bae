package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"porchlight/control/certstore"
	"porchlight/internal/commandline"
)

// sealKeyCommand is "seal-key": what seals certificates in the store.
func sealKeyCommand(term terminal) *cobra.Command {
	return group("seal-key", "The key that seals account and certificates in the store", sealKeyMakeCommand(term))
}

func sealKeyMakeCommand(term terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "make FILE",
		Short: "Write a new key to a file, for --seal-key of every node",
		Long: `Write a new key to a new file that only its owner may read.

With --tls acme and --seal-key FILE the nodes of one store have one account and
one certificate in it, sealed by that key: give every node the same file. Whoever
has a backup and the file has the certificate's private key; keep them apart.

A file may hold two keys, one a line: the first seals, each opens. That is how one
replaces another.`,
		Args: commandline.Exactly("a FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			id, err := certstore.MakeKeys(args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(term.out, "%s holds the key %s. Copy it to every node, and name it there with --seal-key.\n", args[0], id)
			return nil
		},
	}
}

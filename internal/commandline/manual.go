//go:build docs

package commandline

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// AddManual adds the command that packaging runs to write the manual pages, one
// for each verb. Released programs do without it.
func AddManual(root *cobra.Command) {
	root.DisableAutoGenTag = true // it would hold today's date
	root.AddCommand(&cobra.Command{
		Use:    "man DIRECTORY",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "Porchlight", Manual: "Porchlight"}, args[0])
		},
	})
}

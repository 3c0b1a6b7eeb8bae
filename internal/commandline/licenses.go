package commandline

import (
	_ "embed"
	"io"

	"github.com/spf13/cobra"
)

//go:generate go run porchlight/build/licenses

//go:embed licenses.txt
var licenses string

// Licenses is the command that prints whose code is in the programs. Most of the
// licences want that whoever has a program can read them.
func Licenses(out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "licenses",
		Short: "Print whose work Porchlight is made with, and under which licences",
		Args:  Exactly(),
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(out, licenses)
			return err
		},
	}
}

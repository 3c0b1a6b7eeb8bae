//go:build !docs

package commandline

import "github.com/spf13/cobra"

// AddManual adds a command in the build that packaging runs, and none in others.
func AddManual(*cobra.Command) {}

package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"porchlight/agent"
	"porchlight/agent/store"
	"porchlight/internal/commandline"
)

// fits is what upgrade --check prints.
type fits struct {
	Version string `json:"version"` // of this program
	Format  int    `json:"format"`  // to which it brings a data directory
	Data    string `json:"data"`    // the directory
	Is      int    `json:"is"`      // its format now; 0 where there is none yet, or from before they were counted
	Runs    bool   `json:"runs"`    // a Porchlight has it open
}

func upgradeCommand(c cli) *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "upgrade --check",
		Short: "Say whether this version can be started on your data directory",
		Long: `Say whether this version can be started on your data directory. It changes nothing,
and one that runs there goes on.

There is no other upgrade than starting the new program: it copies the database first,
to a file beside it that stays for a month, and brings all of it to its own format or
nothing.

It ends with 1 where a newer version wrote the directory, and names the copy from
before if there is one.`,
		Example: `  porchlight upgrade --check`,
		PreRunE: func(*cobra.Command, []string) error {
			if !check {
				return commandline.Usagef("say --check: starting the new program is the upgrade, and this says whether it can be started")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "look, and change nothing")
	return command(c, cmd, func(_ context.Context, _ []string) (fits, error) {
		dir, err := c.dataDir()
		if err != nil {
			return fits{}, err
		}
		is, knows, err := store.Format(dir)
		runs := errors.Is(err, store.ErrInUse)
		if runs {
			is, knows, err = store.FormatInUse(dir)
		}
		return fits{agent.Version, knows, dir, is, runs}, err
	}, func(f fits, _ []string) error {
		if f.Is == f.Format {
			c.line("%s has format %d, which is that of this program (%s). Nothing in it would be changed.", f.Data, f.Is, f.Version)
		} else {
			c.line("This program (%s) brings %s from format %d to %d when it starts, with a copy made first.", f.Version, f.Data, f.Is, f.Format)
		}
		if f.Runs {
			c.line("Porchlight runs on it, as it was before, until you start it again.")
		}
		return nil
	})
}

package main

import (
	"time"

	"github.com/spf13/cobra"

	"porchlight/agent/export"
	"porchlight/internal/commandline"
)

func exportCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Write down everything that is kept for you, as JSON",
		Long: `Write down everything that is kept for you, as JSON: account, apps and their
options, people, connected apps, activity and settings. No secret is in it, but
names and addresses are: FILE can be read by you alone. A FILE that exists is
replaced. Without one the export goes to the standard output.`,
		Example: `  porchlight export porchlight.json
  porchlight export | jq '.people[].email'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return commandline.Usagef("%s does not know what to do with %q", cmd.CommandPath(), args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := where.owner(cmd.Context())
			if err != nil {
				return err
			}
			all, err := export.Gather(cmd.Context(), client, time.Now())
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return all.Write(term.out)
			}
			if err := all.Save(args[0]); err != nil {
				return err
			}
			if asJSON {
				return term.json(struct {
					OK   bool   `json:"ok"`
					File string `json:"file"`
				}{true, args[0]})
			}
			term.line("Saved as %s.", args[0])
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

package main

import (
	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

// activityWords say what happened.
var activityWords = map[string]string{
	agentapi.ActivityOpened:    "opened",
	agentapi.ActivityClient:    "opened with",
	agentapi.ActivityInvited:   "was invited by",
	agentapi.ActivityGranted:   "was given this app by",
	agentapi.ActivityWithdrawn: "lost this app by",
	agentapi.ActivityRemoved:   "was removed by",
}

func activityCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	var limit int
	cmd := &cobra.Command{
		Use:   "activity",
		Short: "Show who opened what, newest first",
		Long: `Show who opened what, newest first. The record is kept on this computer only,
for 90 days.`,
		Example: `  porchlight activity --limit 20
  porchlight activity clear`,
		Args: commandline.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := where.owner(cmd.Context())
			if err != nil {
				return err
			}
			lines, err := client.Activity(cmd.Context(), limit)
			if err != nil {
				return err
			}
			if asJSON {
				return term.json(lines)
			}
			if len(lines) == 0 {
				term.line("Nobody has opened anything yet.")
				return nil
			}
			rows := make([][]string, len(lines))
			for i, l := range lines {
				what := activityWords[l.Kind]
				if what == "" {
					what = l.Kind
				}
				if l.By != "" {
					what += " " + l.By
				}
				rows[i] = []string{moment(l.At), l.Email, l.App, what}
			}
			return term.table([]string{"WHEN", "WHO", "APP", "WHAT"}, rows)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 100, "lines to show, at most")
	jsonFlag(cmd, &asJSON)
	cmd.AddCommand(clearActivityCommand(where, term))
	return cmd
}

func clearActivityCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "clear",
		Short: "Forget who opened what",
		Args:  commandline.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := where.owner(cmd.Context())
			if err != nil {
				return err
			}
			if err := client.ClearActivity(cmd.Context()); err != nil {
				return err
			}
			if asJSON {
				return term.json(agentapi.Done{OK: true})
			}
			term.line("Forgotten.")
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

package main

import (
	"context"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

// activityWords say what happened.
var activityWords = map[string]string{
	agentapi.ActivityOpened:    "opened",
	agentapi.ActivityClient:    "opened with",
	agentapi.ActivityInvited:   "was invited by",
	agentapi.ActivityGiven:     "was given this app by",
	agentapi.ActivityWithdrawn: "lost this app by",
	agentapi.ActivityRemoved:   "was removed by",
}

func activityCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "activity",
		Short: "Show who opened what, newest first",
		Long: `Show who opened what, newest first. The record is kept on this computer only,
for 90 days.`,
		Example: `  porchlight activity --limit 20
  porchlight activity clear`,
		Args: commandline.Exactly(),
	}
	limit := cmd.Flags().Int("limit", 100, "lines to show, at most")
	cmd.AddCommand(clearActivityCommand(c))
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, _ []string) ([]agentapi.Activity, error) {
		return client.Activity(ctx, *limit)
	}, func(lines []agentapi.Activity, _ []string) error {
		if len(lines) == 0 {
			c.line("Nobody has opened anything yet.")
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
		return c.table([]string{"WHEN", "WHO", "APP", "WHAT"}, rows)
	})
}

func clearActivityCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{Use: "clear", Short: "Forget who opened what", Args: commandline.Exactly()}
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, _ []string) (agentapi.Done, error) {
		return done(client.ClearActivity(ctx))
	}, says[agentapi.Done](c, "Forgotten."))
}

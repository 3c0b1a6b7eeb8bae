package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func noticesCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "notices",
		Short: "Say what apps and programs changed, and take it back",
		Long: `Say what apps and programs changed, and take it back.

A change that can be undone is kept until you have looked at it. Where too many
wait, programs cannot change who may open your apps.`,
		Example: `  porchlight notices
  porchlight notices undo 17
  porchlight notices seen      lets the rest be`,
	}
	cmd.AddCommand(undoNoticeCommand(c), seenCommand(c))
	var seen uint64
	return listCommand(c, cmd, "List them, the newest last", func(client *agentapi.Client, ctx context.Context) ([]agentapi.Notice, error) {
		state, err := client.State(ctx)
		seen = state.NoticesSeen
		return state.Notices, err
	}, func(all []agentapi.Notice) error { return c.printNotices(all, seen) })
}

func undoNoticeCommand(c cli) *cobra.Command {
	var id uint64
	cmd := &cobra.Command{
		Use:   "undo ID",
		Short: "Take back what a notice is about",
		Args:  commandline.Exactly("the ID of the notice"),
		PreRunE: func(cmd *cobra.Command, args []string) (err error) {
			if id, err = strconv.ParseUint(args[0], 10, 64); err != nil {
				return commandline.Usagef("%s takes the number that 'porchlight notices' shows, and not %q", cmd.CommandPath(), args[0])
			}
			return nil
		},
	}
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, _ []string) (agentapi.Done, error) {
		return done(client.UndoNotice(ctx, id))
	}, says[agentapi.Done](c, "Undone."))
}

func seenCommand(c cli) *cobra.Command {
	cmd := verb("seen", "Note that you have looked at all of them")
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, _ []string) (agentapi.Done, error) {
		state, err := client.State(ctx)
		if n := len(state.Notices); err == nil && n > 0 {
			err = client.SeeNotices(ctx, state.Notices[n-1].ID)
		}
		return done(err)
	}, says[agentapi.Done](c, "Seen. What can be undone still can, until newer notices take its place."))
}

func (t *terminal) printNotices(all []agentapi.Notice, seen uint64) error {
	if len(all) == 0 {
		t.line("Nothing to tell.")
		return nil
	}
	unseen := 0
	for _, n := range all {
		what := ""
		if n.Undo {
			what = ", can be undone"
		}
		if n.Undo && n.ID > seen {
			what = ", new" + what
			unseen++
		}
		t.line("%d, %s%s\n    %s", n.ID, moment(n.At), what, printable(n.Text))
	}
	if unseen > 0 {
		t.line("To take one back: porchlight notices undo ID. To let the rest be: porchlight notices seen")
	}
	return nil
}

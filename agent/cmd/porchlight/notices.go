package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func noticesCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	list := func(cmd *cobra.Command, _ []string) error {
		client, err := where.owner(cmd.Context())
		if err != nil {
			return err
		}
		state, err := client.State(cmd.Context())
		if err != nil {
			return err
		}
		if asJSON {
			return term.json(state.Notices)
		}
		return printNotices(term, state)
	}
	cmd := &cobra.Command{
		Use:   "notices",
		Short: "Say what apps and programs changed, and take it back",
		Long: `Say what apps and programs changed, and take it back.

A change that can be undone is kept until you have looked at it. Where too many
wait, programs cannot change who may open your apps.`,
		Example: `  porchlight notices
  porchlight notices undo 17
  porchlight notices seen      lets the rest be`,
		Args: commandline.NoCommand,
		RunE: list,
	}
	listing := &cobra.Command{Use: "list", Short: "List them, the newest last", Args: commandline.Exactly(), RunE: list}
	jsonFlag(cmd, &asJSON)
	jsonFlag(listing, &asJSON)
	cmd.AddCommand(listing, undoNoticeCommand(where, term), seenCommand(where, term))
	return cmd
}

func undoNoticeCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "undo ID",
		Short: "Take back what a notice tells of",
		Args:  commandline.Exactly("the ID of the notice"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseUint(args[0], 10, 64)
			if err != nil {
				return commandline.Usagef("%s takes the number that 'porchlight notices' shows, and not %q", cmd.CommandPath(), args[0])
			}
			client, err := where.owner(cmd.Context())
			if err != nil {
				return err
			}
			if err := client.UndoNotice(cmd.Context(), id); err != nil {
				return err
			}
			if asJSON {
				return term.json(agentapi.Done{OK: true})
			}
			term.line("Undone.")
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func seenCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "seen",
		Short: "Note that you have looked at all of them",
		Args:  commandline.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := where.owner(cmd.Context())
			if err != nil {
				return err
			}
			state, err := client.State(cmd.Context())
			if err != nil {
				return err
			}
			if n := len(state.Notices); n > 0 {
				if err := client.SeeNotices(cmd.Context(), state.Notices[n-1].ID); err != nil {
					return err
				}
			}
			if asJSON {
				return term.json(agentapi.Done{OK: true})
			}
			term.line("Seen. What can be undone still can, until newer notices take its place.")
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func printNotices(term *terminal, state agentapi.OwnerState) error {
	if len(state.Notices) == 0 {
		term.line("Nothing to tell.")
		return nil
	}
	rows, unseen := make([][]string, len(state.Notices)), 0
	for i, n := range state.Notices {
		what := ""
		if n.Undo {
			what = "can be undone"
		}
		if n.Undo && n.ID > state.NoticesSeen {
			what = "new, " + what
			unseen++
		}
		rows[i] = []string{strconv.FormatUint(n.ID, 10), moment(n.At), n.Text, what}
	}
	if err := term.table([]string{"ID", "AT", "NOTICE", ""}, rows); err != nil {
		return err
	}
	if unseen > 0 {
		term.line("To take one back: porchlight notices undo ID. To let the rest be: porchlight notices seen")
	}
	return nil
}

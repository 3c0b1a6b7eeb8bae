package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func statusCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say whether Porchlight is on, and at which address",
		Args:  commandline.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := where.open()
			if err != nil {
				return err
			}
			status, err := client.Status(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return term.json(status)
			}
			if status.Connected {
				term.line("On, at %s", status.URL)
			} else {
				term.line("Not connected")
			}
			switch n := status.PendingApps; n {
			case 0:
			case 1:
				term.line("1 app waits for the owner's approval")
			default:
				term.line("%d apps wait for the owner's approval", n)
			}
			for _, a := range status.Apps {
				term.line("  %s  %s%s", a.URL, printable(a.Label), pausedWord(a))
			}
			if state, ok := ownersState(cmd.Context(), where); ok {
				sayClosed(term, state)
			}
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func appsCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "apps",
		Short: "List the apps: waiting, on, paused and stopped",
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
			apps := make([]agentapi.AppSummary, len(state.Apps))
			rows := make([][]string, len(state.Apps))
			for i, a := range state.Apps {
				apps[i] = a.AppSummary
				rows[i] = []string{a.Name, a.Label, statusWord(a), strconv.Itoa(a.LocalPort), a.URL}
			}
			if asJSON {
				return term.json(apps)
			}
			if len(rows) == 0 {
				term.line("No app has asked for an address yet. Try: porchlight publish notes --label Notes --port 8000")
				return nil
			}
			if err := term.table([]string{"NAME", "LABEL", "STATE", "PORT", "ADDRESS"}, rows); err != nil {
				return err
			}
			for _, a := range state.Apps {
				if changed := a.ListenerChange(printable); changed != "" {
					term.line("%s To have it so, type: porchlight approve %s", changed, a.Name)
				}
			}
			sayClosed(term, state)
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// sayClosed adds what keeps visitors out of every app, whatever an app's own
// state is.
func sayClosed(term *terminal, state agentapi.OwnerState) {
	if state.DarkSince != nil {
		term.line("Everything is closed since %s. Type 'porchlight dark off' to open it again.", moment(*state.DarkSince))
	}
	if state.Trouble != "" {
		term.line("%s", state.Trouble)
	}
}

func pausedWord(a agentapi.AppSummary) string {
	if a.Paused {
		return " (paused)"
	}
	return ""
}

func statusWord(a agentapi.OwnerApp) string {
	switch {
	case a.Status == agentapi.StatusPending:
		return "waiting for you"
	case a.Status == agentapi.StatusRevoked:
		return "stopped"
	case a.Paused:
		return "paused"
	case a.URL == "":
		return "approved, no address yet"
	case !a.Answering:
		return "not answering"
	}
	return "on"
}

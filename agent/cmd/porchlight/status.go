package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/agent/doctor"
	"porchlight/agent/procinfo"
)

func statusCommand(c cli) *cobra.Command {
	cmd := verb("status", "Say whether Porchlight is on, and at which address")
	return programCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, _ []string) (agentapi.StatusSummary, error) {
		ctx, cancel := context.WithTimeout(ctx, doctor.Within)
		defer cancel()
		status, err := client.Status(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("Porchlight does not answer; it may be stopped or busy. See: porchlight doctor")
		}
		return status, err
	}, func(status agentapi.StatusSummary, _ []string) error {
		if status.Connected {
			c.line("On, at %s", status.URL)
		} else {
			c.line("Not connected")
		}
		switch n := status.PendingApps; n {
		case 0:
		case 1:
			c.line("1 app waits for the owner's approval")
		default:
			c.line("%d apps wait for the owner's approval", n)
		}
		for _, a := range status.Apps {
			c.line("  %s  %s%s", a.URL, printable(a.Label), pausedWord(a))
		}
		if client, state := ownersState(cmd.Context(), c.location); client != nil {
			for _, a := range state.Apps {
				sayUntil(c.terminal, a)
			}
			sayClosed(c.terminal, state)
		} else if whose := c.theirs(cmd.Context()); whose != nil {
			c.line("%s", whose)
		}
		return nil
	})
}

func appsCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "apps",
		Short:      "List the apps: waiting, on, paused and stopped",
		SuggestFor: []string{"list", "ls", "ps"},
	}
	var state agentapi.OwnerState
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, _ []string) (apps []listedApp, err error) {
		state, err = client.State(ctx)
		apps = make([]listedApp, len(state.Apps))
		for i, a := range state.Apps {
			apps[i] = listedApp{a.AppSummary, a.AppHealth, a.Network, a.Shared, a.Until}
		}
		return apps, err
	}, func([]listedApp, []string) error {
		if len(state.Apps) == 0 {
			c.line("No app has asked for an address yet. Try: porchlight publish notes --label Notes --port 8000")
			return nil
		}
		rows := make([][]string, len(state.Apps))
		for i, a := range state.Apps {
			rows[i] = []string{a.Name, a.Label, statusWord(a), strconv.Itoa(a.LocalPort), a.URL}
		}
		if err := c.table([]string{"NAME", "LABEL", "STATE", "PORT", "ADDRESS"}, rows); err != nil {
			return err
		}
		for _, a := range state.Apps {
			if changed := a.ListenerChange(printable); changed != "" {
				c.line("%s To have it so, type: porchlight approve %s", changed, a.Name)
			}
			if who := a.WhoAsks(printable).String(); who != "" {
				c.line("%s: %s", a.Name, who)
			}
			if alike := a.Alike(printable); !alike.IsZero() {
				c.line("%s: %s", a.Name, alike)
			}
			sayAilment(c.terminal, a)
			if a.Network && a.Status != agentapi.StatusStopped {
				c.line("%s: %s", a.Name, a.NetworkDetail)
			}
			sayShared(c.terminal, a)
			sayUntil(c.terminal, a)
		}
		sayClosed(c.terminal, state)
		return nil
	})
}

// listedApp is an entry of apps --json.
type listedApp struct {
	agentapi.AppSummary
	agentapi.AppHealth
	Network bool             `json:"network"`
	Shared  *agentapi.Shared `json:"shared,omitempty"`
	Until   *time.Time       `json:"until,omitempty"`
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
	case a.Status == agentapi.StatusStopped:
		return "stopped"
	case a.Paused:
		return "paused"
	case a.URL == "":
		return "approved, no address yet"
	}
	if a.Shared != nil {
		return cmp.Or(a.Ailment, "on, shared")
	}
	return cmp.Or(a.Ailment, "on")
}

// sayShared says where an app comes from that is shared from a terminal.
func sayShared(term *terminal, a agentapi.OwnerApp) {
	switch s := a.Shared; {
	case s == nil:
	case s.PID != 0 && !procinfo.Runs(s.PID):
		term.line("%s was shared at %s by process %d, which has ended and left it. To put back what was before, type: porchlight unshare %s", a.Name, moment(s.At), s.PID, a.Name)
	case s.PID != 0:
		term.line("%s is shared since %s by process %d, until that ends.", a.Name, moment(s.At), s.PID)
	}
}

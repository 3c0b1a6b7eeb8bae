package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func pauseCommand(c cli) *cobra.Command {
	return endCommand(c, "pause NAME", "Keep everybody out of an app, you included, until you resume it",
		(*agentapi.Client).Pause, "%s is paused until you resume it. Everyone who may open it keeps that for later.")
}

func resumeCommand(c cli) *cobra.Command {
	cmd := verb("resume NAME", "Open a paused app again", "the NAME of the app")
	again := " again"
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, args []string) (agentapi.Done, error) {
		state, err := client.State(ctx)
		if app, bad := appIn(state, args[0]); err == nil && bad == nil && app.Status == agentapi.StatusLive && !app.Paused {
			again = ", as it was"
		}
		return done(client.Resume(ctx, args[0]))
	}, func(_ agentapi.Done, args []string) error {
		c.line("%s is open%s, to everyone who may open it.", printable(args[0]), again)
		return nil
	})
}

func darkCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dark [on|off]",
		Short: "Close everything at once, or open it again",
		Long: `Close everything at once: nobody can open any app, you included, and what is
open is cut off. Approvals, people and sign-ins stay. It lasts, also across
restarts, until 'porchlight dark off'. 'porchlight dark on' is the same as
'porchlight dark'.`,
		Example: `  porchlight dark
  porchlight dark off`,
		ValidArgs: []string{"on", "off"},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && !slices.Contains(cmd.ValidArgs, args[0]) {
				return commandline.Usagef("%s takes 'on', which is the same without, or 'off'", cmd.CommandPath())
			}
			return nil
		},
	}
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, args []string) (any, error) {
		if slices.Contains(args, "off") {
			return done(client.LightUp(ctx))
		}
		return client.GoDark(ctx)
	}, func(result any, _ []string) error {
		closed, dark := result.(agentapi.Closed)
		if !dark {
			c.line("Open again, to everyone who could open your apps before.")
			return nil
		}
		c.line("Everything is closed. Type 'porchlight dark off' to open it again.")
		c.closed(closed)
		return nil
	})
}

package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func pauseCommand(where *location, term *terminal) *cobra.Command {
	return endCommand(where, term, "pause NAME", "Keep everybody out of an app, you included, until you resume it",
		(*agentapi.Client).Pause, "%s is paused until you resume it. Everyone who may open it keeps that for later.")
}

func resumeCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "resume NAME",
		Short: "Open a paused app again",
		Args:  commandline.Exactly("the NAME of the app"),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := where.owner(cmd.Context())
			if err != nil {
				return err
			}
			if err := client.Resume(cmd.Context(), args[0]); err != nil {
				return err
			}
			if asJSON {
				return term.json(agentapi.Done{OK: true})
			}
			term.line("%s is open again to everyone who may open it.", args[0])
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func darkCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "dark [off]",
		Short: "Close everything at once, or open it again",
		Long: `Close everything at once: nobody can open any app, you included, and what is
open is cut off. Approvals, people and sign-ins stay. It lasts, also across
restarts, until 'porchlight dark off'.`,
		Example: `  porchlight dark
  porchlight dark off`,
		ValidArgs: []string{"off"},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && args[0] != "off" {
				return commandline.Usagef("%s takes nothing, or 'off'", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := where.owner(cmd.Context())
			if err != nil {
				return err
			}
			if len(args) == 1 {
				if err := client.LightUp(cmd.Context()); err != nil {
					return err
				}
				if asJSON {
					return term.json(agentapi.Done{OK: true})
				}
				term.line("Open again, to everyone who could open your apps before.")
				return nil
			}
			closed, err := client.GoDark(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return term.json(closed)
			}
			term.line("Everything is closed. Type 'porchlight dark off' to open it again.")
			if closed.Closed > 0 {
				term.line("Open connections closed: %d, in %d ms.", closed.Closed, closed.Milliseconds)
			}
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func optionsCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	var want agentapi.AppOptions
	cmd := &cobra.Command{
		Use:   "options NAME",
		Short: "Show or set how requests reach an app",
		Long: `Show or set how requests reach an app. Without a flag the options are shown; a
flag that is not given stays as it is.`,
		Example: `  porchlight options notes
  porchlight options vite --localhost-host                   for a development server that checks Host
  porchlight options calendar --identity-header X-Remote-User --identity-value email
  porchlight options calendar --identity-header ''           no such header any more
  porchlight options notes --forwarded=false`,
		Args: commandline.Exactly("the NAME of the app"),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := where.owner(cmd.Context())
			if err != nil {
				return err
			}
			state, err := client.State(cmd.Context())
			if err != nil {
				return err
			}
			app, err := appIn(state, args[0])
			if err != nil {
				return err
			}
			now, change := app.Options, given(cmd, want)
			header := now.IdentityHeader
			if cmd.Flags().Changed("identity-header") {
				header = want.IdentityHeader
			}
			if cmd.Flags().Changed("identity-value") && header == "" {
				return commandline.Usagef("--identity-value needs an --identity-header to carry it")
			}
			if len(change) > 0 {
				if now, err = client.ChangeOptions(cmd.Context(), args[0], change); err != nil {
					return err
				}
			}
			if asJSON {
				return term.json(now)
			}
			return showOptions(term, now)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&want.Forwarded, "forwarded", false, "add true X-Forwarded-For, -Proto and -Host")
	f.BoolVar(&want.LocalhostHost, "localhost-host", false, "send localhost:PORT as Host")
	f.StringVar(&want.IdentityHeader, "identity-header", "", "also say who the visitor is in this header, like X-Remote-User; '' for none")
	f.StringVar(&want.IdentityValue, "identity-value", agentapi.IdentityEmail, "what that header carries: email or id")
	f.BoolVar(&want.AllowCrossOrigin, "allow-cross-origin", false, "let pages of other apps send requests and open WebSockets with a visitor's sign-in")
	f.BoolVar(&want.H2C, "h2c", false, "speak HTTP/2 without TLS to the app")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// given is what the flags that were given change, by the options' names in JSON.
func given(cmd *cobra.Command, want agentapi.AppOptions) map[string]any {
	change := map[string]any{}
	for _, o := range []struct {
		flag, name string
		value      any
	}{
		{"forwarded", "forwarded", want.Forwarded},
		{"localhost-host", "localhostHost", want.LocalhostHost},
		{"identity-header", "identityHeader", want.IdentityHeader},
		{"identity-value", "identityValue", want.IdentityValue},
		{"allow-cross-origin", "allowCrossOrigin", want.AllowCrossOrigin},
		{"h2c", "h2c", want.H2C},
	} {
		if cmd.Flags().Changed(o.flag) {
			change[o.name] = o.value
		}
	}
	return change
}

func showOptions(term *terminal, o agentapi.AppOptions) error {
	identity := "none"
	if o.IdentityHeader != "" {
		identity = o.IdentityHeader + ", with the " + map[string]string{
			agentapi.IdentityEmail: "email address", agentapi.IdentityID: "account id",
		}[o.IdentityValue]
	}
	return term.table([]string{"OPTION", "VALUE"}, [][]string{
		{"forwarded", onOff(o.Forwarded)},
		{"localhost-host", onOff(o.LocalhostHost)},
		{"identity-header", identity},
		{"allow-cross-origin", onOff(o.AllowCrossOrigin)},
		{"h2c", onOff(o.H2C)},
	})
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func settingsCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	var want agentapi.Settings
	cmd := &cobra.Command{
		Use:   "settings",
		Short: "Show or set what Porchlight does by itself",
		Long: `Show or set what Porchlight does by itself. Without a flag the settings are
shown; a flag that is not given stays as it is.

--quiet takes the kinds of notifications you do without:
` + quietKinds(),
		Example: `  porchlight settings
  porchlight settings --fail-static-hours 4       people keep their access for 4 hours without the control plane
  porchlight settings --ask-again                 an app that changes its port waits for your approval
  porchlight settings --trust-everybody           programs of every user of this computer count as yours
  porchlight settings --quiet access,changed`,
		Args: commandline.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkQuiet(want.Quiet); err != nil {
				return err
			}
			client, err := where.owner(cmd.Context())
			if err != nil {
				return err
			}
			now, err := client.Settings(cmd.Context())
			if err != nil {
				return err
			}
			next := now
			if cmd.Flags().Changed("fail-static-hours") {
				next.FailStaticHours = want.FailStaticHours
			}
			if cmd.Flags().Changed("ask-again") {
				next.AskAgain = want.AskAgain
			}
			if cmd.Flags().Changed("trust-everybody") {
				next.TrustEverybody = want.TrustEverybody
			}
			if cmd.Flags().Changed("quiet") {
				next.Quiet = want.Quiet
			}
			if next.FailStaticHours != now.FailStaticHours || next.AskAgain != now.AskAgain || next.TrustEverybody != now.TrustEverybody || !slices.Equal(next.Quiet, now.Quiet) {
				if now, err = client.SetSettings(cmd.Context(), next); err != nil {
					return err
				}
			}
			if asJSON {
				return term.json(now)
			}
			quiet := "none"
			if len(now.Quiet) > 0 {
				quiet = strings.Join(now.Quiet, ", ")
			}
			term.line("People keep their access for %d hours while the control plane is away.", now.FailStaticHours)
			term.line("An app that changes its port asks again: %s.", onOff(now.AskAgain))
			term.line("Everybody on this computer is trusted: %s.", onOff(now.TrustEverybody))
			term.line("Kept quiet, without a notification: %s.", quiet)
			return nil
		},
	}
	f := cmd.Flags()
	f.IntVar(&want.FailStaticHours, "fail-static-hours", 24, "hours people keep their access while the control plane is away, 0 to 24")
	f.BoolVar(&want.AskAgain, "ask-again", false, "have an app that changes its port wait for your approval")
	f.BoolVar(&want.TrustEverybody, "trust-everybody", false, "have programs of every user of this computer count as your own")
	f.StringSliceVar(&want.Quiet, "quiet", nil, "kinds that raise no notification; '' for none")
	jsonFlag(cmd, &asJSON)
	return cmd
}

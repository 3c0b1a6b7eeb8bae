package main

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func settingsCommand(c cli) *cobra.Command {
	var want agentapi.Settings
	versions := ""
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
  porchlight settings --probe=false               ask no app how it does; only visitors do
  porchlight settings --requests=false            keep nothing of what visitors ask, and forget what there is
  porchlight settings --display-name Maya         people you invite read "Maya" beside your address
  porchlight settings --language de               menu, window and the mails to those you invite are in German
  porchlight settings --titles=false              ask no program for its title while you choose what to share
  porchlight settings --strangers-knock           people you have never invited may ask to be let in
  porchlight settings --quiet access,changed`,
		Args:    commandline.Exactly(),
		PreRunE: func(*cobra.Command, []string) error { return checkQuiet(want.Quiet) },
	}
	f := cmd.Flags()
	f.IntVar(&want.FailStaticHours, "fail-static-hours", 24, "hours people keep their access while the control plane is away, 0 to 24")
	f.BoolVar(&want.AskAgain, "ask-again", false, "have an app that changes its port wait for your approval")
	f.BoolVar(&want.TrustEverybody, "trust-everybody", false, "have programs of every user of this computer count as your own")
	f.BoolVar(&want.Probe, "probe", true, "ask approved apps for their first page, to tell you how they do")
	f.BoolVar(&want.Requests, "requests", true, "keep the last requests of visitors in memory, for you to see")
	f.StringVar(&want.DisplayName, "display-name", "", "what people you invite read beside your address; '' for the address alone")
	f.StringVar(&want.UpdateAddress, "update-address", "", "https:// address that says once a day whether there is a newer version; none for nowhere, '' for what your server's operator names")
	f.StringVar(&want.UpdateKey, "update-key", "", "public key that signs there, in base64; named together with the address")
	f.StringVar(&want.Language, "language", "", "language of menu, window, notifications and of the mails to those you invite: en, de; '' for that of the desktop")
	f.BoolVar(&want.Titles, "titles", true, "ask programs of yours for title and icon while you choose what to share")
	f.BoolVar(&want.StrangersKnock, "strangers-knock", false, "let people you have never invited ask to be let in")
	f.StringSliceVar(&want.Quiet, "quiet", nil, "kinds that raise no notification; '' for none")
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, _ []string) (agentapi.Settings, error) {
		now, err := client.Settings(ctx)
		if err != nil {
			return now, err
		}
		next := now
		f.Visit(func(flag *pflag.Flag) {
			if set := settingOf[flag.Name]; set != nil {
				set(&next, want)
			}
		})
		if !reflect.DeepEqual(next, now) {
			if next, err = client.SetSettings(ctx, next); err != nil {
				return now, err
			}
		}
		if asJSON, _ := cmd.Flags().GetBool("json"); !asJSON {
			// The settings are as they are, also where nobody can say this beside them.
			if state, err := client.State(ctx); err == nil {
				versions = newerVersions(state.Update)
			}
		}
		return next, nil
	}, func(now agentapi.Settings, _ []string) error {
		quiet := "none"
		if len(now.Quiet) > 0 {
			quiet = strings.Join(now.Quiet, ", ")
		}
		c.line("People keep their access for %d hours while the control plane is away.", now.FailStaticHours)
		c.line("An app that changes its port asks again: %s.", onOff(now.AskAgain))
		c.line("Everybody on this computer is trusted: %s.", onOff(now.TrustEverybody))
		c.line("Apps are asked how they do: %s.", onOff(now.Probe))
		c.line("What visitors ask is kept in memory for you to see: %s.", onOff(now.Requests))
		name := "none, your address alone"
		if now.DisplayName != "" {
			name = printable(now.DisplayName)
		}
		c.line("Your name, as people you invite read it: %s.", name)
		if versions != "" {
			c.line("%s", versions)
		}
		c.line("Language: %s.", cmp.Or(now.Language, "that of the desktop"))
		c.line("Programs are asked for titles and icons while you choose what to share: %s.", onOff(now.Titles))
		c.line("People you have never invited may ask to be let in: %s.", onOff(now.StrangersKnock))
		c.line("Kept quiet, without a notification: %s.", quiet)
		return nil
	})
}

// settingOf is what each flag sets, from what it was given.
var settingOf = map[string]func(to *agentapi.Settings, want agentapi.Settings){
	"fail-static-hours": func(to *agentapi.Settings, want agentapi.Settings) { to.FailStaticHours = want.FailStaticHours },
	"ask-again":         func(to *agentapi.Settings, want agentapi.Settings) { to.AskAgain = want.AskAgain },
	"trust-everybody":   func(to *agentapi.Settings, want agentapi.Settings) { to.TrustEverybody = want.TrustEverybody },
	"probe":             func(to *agentapi.Settings, want agentapi.Settings) { to.Probe = want.Probe },
	"requests":          func(to *agentapi.Settings, want agentapi.Settings) { to.Requests = want.Requests },
	"display-name":      func(to *agentapi.Settings, want agentapi.Settings) { to.DisplayName = want.DisplayName },
	"language":          func(to *agentapi.Settings, want agentapi.Settings) { to.Language = want.Language },
	"titles":            func(to *agentapi.Settings, want agentapi.Settings) { to.Titles = want.Titles },
	"strangers-knock":   func(to *agentapi.Settings, want agentapi.Settings) { to.StrangersKnock = want.StrangersKnock },
	"quiet":             func(to *agentapi.Settings, want agentapi.Settings) { to.Quiet = want.Quiet },
	"update-key":        func(to *agentapi.Settings, want agentapi.Settings) { to.UpdateKey = want.UpdateKey },
	"update-address": func(to *agentapi.Settings, want agentapi.Settings) {
		// Flags are gone through by name, so a key that is given comes after this.
		if to.UpdateAddress = want.UpdateAddress; want.UpdateAddress == "" || want.UpdateAddress == agentapi.NoAddress {
			to.UpdateKey = ""
		}
	},
}

// newerVersions says where newer versions are asked for, and what was learnt there.
func newerVersions(u *agentapi.Update) string {
	if u == nil {
		return "Newer versions are asked for: nowhere."
	}
	text := "Newer versions are asked for at: " + cmp.Or(printable(u.Address), "nowhere")
	if u.By == agentapi.ByOperator {
		text += ", as whoever runs your server chose"
	}
	text += "."
	if u.Version != "" {
		text += " Version " + printable(u.Version) + " is there."
	}
	if u.Problem != "" {
		text += " " + printable(u.Problem)
	}
	return text
}

// quietKinds lists for the help what settings --quiet takes, a line each.
func quietKinds() string {
	var b strings.Builder
	for _, k := range agentapi.Kinds() {
		fmt.Fprintf(&b, "  %-11s %s\n", k.Name, k.About)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// checkQuiet refuses a kind nobody knows: it would be kept and change nothing.
func checkQuiet(kinds []string) error {
	for _, kind := range kinds {
		if !slices.ContainsFunc(agentapi.Kinds(), func(k agentapi.Kind) bool { return k.Name == kind }) {
			return commandline.Usagef("there is no kind of notification %q; 'porchlight settings --help' lists them", printable(kind))
		}
	}
	return nil
}

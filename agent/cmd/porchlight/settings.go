package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func settingsCommand(c cli) *cobra.Command {
	versions := ""
	cmd := &cobra.Command{
		Use:   "settings",
		Short: "Show or set what Porchlight does by itself",
		Long: `Show or set what Porchlight does by itself. Without a flag the settings are
shown; a flag that is not given stays as it is.

--notify chooses how much you are notified of; --quiet, one by one, the kinds
you do without:
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
  porchlight settings --client-hosts claude.ai     apps of claude.ai may ask to be let in, in local mode
  porchlight settings --notify waiting            notify me of what waits for me, and of nothing else
  porchlight settings --quiet access,changed`,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			quiet, err := cmd.Flags().GetStringSlice("quiet")
			return errors.Join(err, checkQuiet(quiet))
		},
	}
	f := cmd.Flags()
	addFlags(f, agentapi.SettingFields)
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, _ []string) (now agentapi.Settings, err error) {
		change := given(f, agentapi.SettingFields)
		if len(change) == 0 {
			now, err = client.Settings(ctx)
		} else {
			now, err = client.ChangeSettings(ctx, change)
		}
		if asJSON, _ := f.GetBool("json"); err == nil && !asJSON {
			// The settings are as they are, also where nobody can say this beside them.
			if state, err := client.State(ctx); err == nil {
				versions = newerVersions(state.Update)
			}
		}
		return now, err
	}, func(now agentapi.Settings, _ []string) error {
		for _, setting := range agentapi.SettingFields {
			if setting.Says != "" {
				c.line(setting.Says, saidOf(setting, now))
			}
		}
		if versions != "" {
			c.line("%s", versions)
		}
		return nil
	})
}

// saidOf is how a setting is, as its sentence says it.
func saidOf(setting agentapi.Field, now agentapi.Settings) string {
	switch value := setting.Of(now).(type) {
	case bool:
		return onOff(value)
	case string:
		return cmp.Or(printable(value), setting.None)
	case []string:
		return cmp.Or(strings.Join(value, ", "), setting.None)
	default:
		return fmt.Sprint(value)
	}
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

package main

import (
	"cmp"
	"context"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func optionsCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "options NAME",
		Short: "Show or set how requests reach an app",
		Long: `Show or set how requests reach an app. Without a flag the options are shown; a
flag that is not given stays as it is.`,
		Example: `  porchlight options notes
  porchlight options vite --localhost-host                   for a development server that checks Host
  porchlight options calendar --identity-header X-Remote-User --identity-value email
  porchlight options calendar --identity-header ''           no such header any more
  porchlight options nas --upstream https --pin              for an app that speaks HTTPS itself
  porchlight options nas --upstream auto --pin=false         HTTP on its port again
  porchlight options wiki --upstream unix:/home/maya/wiki/app.sock
  porchlight options intranet --host-header intranet.example for an app that answers to another name
  porchlight options notes --forwarded=false
  porchlight options shop --public-address                   for an app whose links begin with http://
  porchlight options reports --first-byte 300                for a page that takes minutes to make
  porchlight options grafana --identity-token                for an app that checks who is there by a signature
  porchlight options vault --only-passkey --besides-passkey tokens
                                                             for an app that opens with a passkey, and to assistants
  porchlight options notes --mcp /mcp                        for an app that assistants use; apps says how it does`,
		Args: commandline.Exactly("the NAME of the app"),
	}
	f := cmd.Flags()
	addFlags(f, agentapi.Options)
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, args []string) (agentapi.AppOptions, error) {
		state, err := client.State(ctx)
		if err != nil {
			return agentapi.AppOptions{}, err
		}
		app, err := appIn(state, args[0])
		if err != nil {
			return agentapi.AppOptions{}, err
		}
		change := given(f, agentapi.Options)
		header, named := change["identityHeader"]
		if !named {
			header = app.Options.IdentityHeader
		}
		if f.Changed("identity-value") && header == "" {
			return agentapi.AppOptions{}, commandline.Usagef("--identity-value needs an --identity-header to carry it")
		}
		if only, named := change["onlyPasskey"].(bool); f.Changed("besides-passkey") && !(only || !named && app.Options.OnlyPasskey) {
			return agentapi.AppOptions{}, commandline.Usagef("--besides-passkey needs --only-passkey")
		}
		if len(change) == 0 {
			return app.Options, nil
		}
		return client.ChangeOptions(ctx, args[0], change)
	}, func(now agentapi.AppOptions, _ []string) error { return showOptions(c.terminal, now) })
}

// addFlags makes a flag of each field of a table.
func addFlags(f *pflag.FlagSet, table []agentapi.Field) {
	for _, one := range table {
		switch usual := one.Default.(type) {
		case bool:
			f.Bool(one.Flag(), usual, one.Help)
		case int:
			f.Int(one.Flag(), usual, one.Help)
		case string:
			f.String(one.Flag(), usual, one.Help)
		case []string:
			f.StringSlice(one.Flag(), usual, one.Help)
		}
	}
}

// given is what the flags that were given change, by the fields' names in JSON.
func given(f *pflag.FlagSet, table []agentapi.Field) map[string]any {
	change := map[string]any{}
	for _, one := range table {
		flag := one.Flag()
		if !f.Changed(flag) {
			continue
		}
		switch one.Default.(type) {
		case bool:
			change[one.Name], _ = f.GetBool(flag)
		case int:
			change[one.Name], _ = f.GetInt(flag)
		case string:
			change[one.Name], _ = f.GetString(flag)
		case []string:
			change[one.Name], _ = f.GetStringSlice(flag)
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
	var rows [][]string
	for _, option := range agentapi.Options {
		switch value := option.Of(o).(type) {
		case bool:
			rows = append(rows, []string{option.Flag(), onOff(value)})
		case int: // firstByte, the one number
			rows = append(rows, []string{option.Flag(), strconv.Itoa(cmp.Or(value, agentapi.DefaultFirstByte)) + " s"})
		case string:
			switch option.Name {
			case "identityHeader":
				value = identity
			case "identityValue":
				continue // said with the header
			case "upstream":
				value = cmp.Or(value, "auto")
			}
			rows = append(rows, []string{option.Flag(), printable(cmp.Or(value, "none"))})
		}
	}
	return term.table([]string{"OPTION", "VALUE"}, rows)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

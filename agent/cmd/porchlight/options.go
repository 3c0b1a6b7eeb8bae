package main

import (
	"context"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func optionsCommand(c cli) *cobra.Command {
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
	}
	f := cmd.Flags()
	f.BoolVar(&want.Forwarded, "forwarded", false, "add true X-Forwarded-For, -Proto and -Host")
	f.BoolVar(&want.LocalhostHost, "localhost-host", false, "send localhost:PORT as Host")
	f.StringVar(&want.IdentityHeader, "identity-header", "", "also say who the visitor is in this header, like X-Remote-User; '' for none")
	f.StringVar(&want.IdentityValue, "identity-value", agentapi.IdentityEmail, "what that header carries: email or id")
	f.BoolVar(&want.AllowCrossOrigin, "allow-cross-origin", false, "let pages of other apps send requests and open WebSockets with a visitor's sign-in")
	f.BoolVar(&want.H2C, "h2c", false, "speak HTTP/2 without TLS to the app")
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, args []string) (agentapi.AppOptions, error) {
		state, err := client.State(ctx)
		if err != nil {
			return want, err
		}
		app, err := appIn(state, args[0])
		if err != nil {
			return want, err
		}
		header := app.Options.IdentityHeader
		if f.Changed("identity-header") {
			header = want.IdentityHeader
		}
		if f.Changed("identity-value") && header == "" {
			return want, commandline.Usagef("--identity-value needs an --identity-header to carry it")
		}
		change := given(cmd, want)
		if len(change) == 0 {
			return app.Options, nil
		}
		return client.ChangeOptions(ctx, args[0], change)
	}, func(now agentapi.AppOptions, _ []string) error { return showOptions(c.terminal, now) })
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

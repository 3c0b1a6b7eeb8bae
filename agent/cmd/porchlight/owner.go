package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/agent/openlink"
	"porchlight/internal/commandline"
)

// browserReads is how long open waits for the browser to have read the link.
const browserReads = 10 * time.Second

func denyCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "deny NAME",
		Short: "Refuse an app that asked for an address",
		Args:  commandline.Exactly("the NAME of the app"),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := where.owner(cmd.Context())
			if err != nil {
				return err
			}
			if err := client.Deny(cmd.Context(), args[0]); err != nil {
				return err
			}
			if asJSON {
				return term.json(agentapi.Done{OK: true})
			}
			term.line("%s stays off. If it asks again, you won't hear of it for 10 minutes.", args[0])
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// stopCommand is what pause was called once: an app that its owner stopped came
// back by itself as soon as it published again.
func stopCommand(where *location, term *terminal) *cobra.Command {
	cmd := pauseCommand(where, term)
	cmd.Use, cmd.Hidden = "stop NAME", true
	return cmd
}

func revokeCommand(where *location, term *terminal) *cobra.Command {
	return endCommand(where, term, "revoke NAME", "Take an app's address away and forget its approval",
		(*agentapi.Client).Revoke, "%s is revoked; its approval and who may open it are forgotten.")
}

func openCommand(where *location, term *terminal) *cobra.Command {
	var printOnly, asJSON bool
	cmd := &cobra.Command{
		Use:   "open [NAME]",
		Short: "Open an app, or the page with all of yours, in your browser, signed in as the owner",
		Long: `Open an app in your browser, signed in as the owner; without NAME, the page at
your own address, which leads to all your apps.

The link works once, for a minute. With --print it is printed instead of opened:
whoever has it first is the owner there, so do not pass it on.`,
		Example: `  porchlight open
  porchlight open notes
  porchlight open notes --print`,
		Args: commandline.AtMost("the NAME of the app"),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := where.owner(cmd.Context())
			if err != nil {
				return err
			}
			link, err := openLinkOf(cmd.Context(), client, args)
			if err != nil {
				return err
			}
			switch {
			case asJSON:
				return term.json(link)
			case printOnly:
				term.line("%s", link.URL)
				return nil
			}
			opened, err := openlink.Open(cmd.Context(), link.URL)
			if err != nil {
				return fmt.Errorf("%w For a link to open yourself, type: %s --print", err, strings.Join(append([]string{cmd.CommandPath()}, args...), " "))
			}
			// The browser needs a moment to read the page that holds the link.
			ctx, cancel := context.WithTimeout(cmd.Context(), browserReads)
			defer cancel()
			opened.Wait(ctx)
			return nil
		},
	}
	cmd.Flags().BoolVar(&printOnly, "print", false, "print the link instead of opening it")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func openLinkOf(ctx context.Context, client *agentapi.Client, args []string) (agentapi.OpenLink, error) {
	if len(args) == 0 {
		return client.OpenLauncher(ctx)
	}
	return client.Open(ctx, args[0])
}

func outboxCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "outbox",
		Short: "Show the mails kept on this computer (local mode sends none)",
		Args:  commandline.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := where.owner(cmd.Context())
			if err != nil {
				return err
			}
			mails, err := client.Outbox(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return term.json(mails)
			}
			if len(mails) == 0 {
				term.line("No mail yet. Signing in at an app's address writes one.")
			}
			for _, m := range mails {
				term.line("%s  to %s: %s", m.At.Local().Format("2006-01-02 15:04:05"), printable(m.To), printable(m.Subject))
				for text := range strings.Lines(m.Text) {
					term.line("    %s", printable(strings.TrimRight(text, "\r\n")))
				}
			}
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

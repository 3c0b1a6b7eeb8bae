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

func denyCommand(c cli) *cobra.Command {
	cmd := verb("deny NAME", "Refuse an app that asked for an address", "the NAME of the app")
	return ownerCommand(c, cmd, of((*agentapi.Client).Deny), func(denied agentapi.Denied, args []string) error {
		if !denied.Muted {
			c.line("%s stays off. If it asks again, you won't hear of it for 10 minutes.", args[0])
			return nil
		}
		c.line("%s stays off. If it asks again, you won't hear of it until you type: %s", args[0], c.typed("unmute %s", args[0]))
		return nil
	})
}

func unmuteCommand(c cli) *cobra.Command {
	cmd := verb("unmute NAME", "Hear again of an app that you denied twice, when it asks", "the NAME of the app")
	return ownerCommand(c, cmd, of(doing((*agentapi.Client).Unmute)), says[agentapi.Done](c, "You hear of %s again when it asks."))
}

// stopCommand is what pause was called once: an app that its owner stopped came
// back by itself as soon as it published again.
func stopCommand(c cli) *cobra.Command {
	cmd := pauseCommand(c)
	cmd.Use, cmd.Hidden = "stop NAME", true
	return cmd
}

func revokeCommand(c cli) *cobra.Command {
	return endCommand(c, "revoke NAME", "Take an app's address away and forget its approval",
		(*agentapi.Client).Revoke, "%s is revoked; its approval and who may open it are forgotten.")
}

func openCommand(c cli) *cobra.Command {
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
	}
	printOnly := cmd.Flags().Bool("print", false, "print the link instead of opening it")
	return ownerCommand(c, cmd, openLinkOf, func(link agentapi.OpenLink, args []string) error {
		if !*printOnly {
			sayWarning(cmd.Context(), c)
		}
		return openOrPrint(c, cmd, link, args, *printOnly)
	})
}

// openOrPrint has the owner's browser open a link, or prints it.
func openOrPrint(c cli, cmd *cobra.Command, link agentapi.OpenLink, args []string, printOnly bool) error {
	if printOnly {
		c.line("%s", link.URL)
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
}

func openLinkOf(ctx context.Context, client *agentapi.Client, args []string) (agentapi.OpenLink, error) {
	if len(args) == 0 {
		return client.OpenLauncher(ctx)
	}
	return client.Open(ctx, args[0])
}

func outboxCommand(c cli) *cobra.Command {
	cmd := verb("outbox", "Show the mails kept on this computer (local mode sends none)")
	return ownerCommand(c, cmd, all((*agentapi.Client).Outbox), func(mails []agentapi.Mail, _ []string) error {
		if len(mails) == 0 {
			c.line("No mail yet. Signing in at an app's address writes one.")
		}
		for _, m := range mails {
			c.line("%s  to %s: %s", m.At.Local().Format("2006-01-02 15:04:05"), printable(m.To), printable(m.Subject))
			for text := range strings.Lines(m.Text) {
				c.line("    %s", printable(strings.TrimRight(text, "\r\n")))
			}
		}
		return nil
	})
}

package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

// pollEvery is how often publish --wait looks; the open tier has no events.
const pollEvery = 500 * time.Millisecond

func publishCommand(where *location, term *terminal) *cobra.Command {
	var req agentapi.PublishRequest
	var wait, asJSON bool
	cmd := &cobra.Command{
		Use:   "publish NAME --label LABEL --port PORT",
		Short: "Ask for an address for an app that listens on a local port",
		Long: `Ask for an address for an app that listens on a local port.

The first time, the owner of this computer has to approve it; after that the
same name is on again at once. Until the owner shares it, only the owner can
open it.`,
		Example: "  porchlight publish notes --label Notes --port 8000 --wait",
		Args:    commandline.Exactly("the NAME of its address"),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.Name = args[0]
			if req.Label == "" {
				return commandline.Usagef("publish needs --label, the name people see")
			}
			if req.LocalPort == 0 {
				return commandline.Usagef("publish needs --port, where the app listens on 127.0.0.1")
			}
			client, err := where.open()
			if err != nil {
				return err
			}
			pub, err := client.Publish(cmd.Context(), req)
			if err != nil {
				return err
			}
			connected := true
			if pub.Status == agentapi.StatusPending {
				status, err := client.Status(cmd.Context())
				if err != nil {
					return err
				}
				connected = status.Host != ""
			}
			if wait && !connected {
				term.remark("This computer is not connected yet; the app gets its address once it is.")
			}
			if wait && pub.Status == agentapi.StatusPending {
				term.remark("Waiting for the owner to approve %q in the menu bar, or by: porchlight approve %s", printable(req.Label), req.Name)
				if pub, err = waitLive(cmd.Context(), client, req.Name); err != nil {
					return err
				}
			}
			out := publishedApp{Publication: pub, Paused: paused(cmd.Context(), client, req.Name, pub)}
			if asJSON {
				return term.json(out)
			}
			printPublication(term, req.Name, out, connected)
			return nil
		},
	}
	cmd.Flags().StringVar(&req.Label, "label", "", "name that people see, 1 to 100 characters")
	cmd.Flags().IntVar(&req.LocalPort, "port", 0, "port the app listens on, 1 to 65535")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the owner has decided")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// publishedApp is what publish prints: the interface's answer, and whether the
// owner keeps everybody out meanwhile, which that does not tell.
type publishedApp struct {
	agentapi.Publication
	Paused bool `json:"paused,omitempty"`
}

func paused(ctx context.Context, client *agentapi.Client, name string, pub agentapi.Publication) bool {
	if pub.Status != agentapi.StatusLive {
		return false
	}
	status, err := client.Status(ctx)
	if err != nil {
		return false // the app is published all the same
	}
	return slices.ContainsFunc(status.Apps, func(a agentapi.AppSummary) bool { return a.Name == name && a.Paused })
}

// waitLive polls as the interface has apps do it, until the name is live or
// gone.
func waitLive(ctx context.Context, client *agentapi.Client, name string) (agentapi.Publication, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		pub, err := client.Publication(ctx, name)
		if agentapi.CodeOf(err) == agentapi.CodeNotFound {
			return pub, agentapi.Errorf(agentapi.CodeNotFound, "The owner denied %q.", name)
		}
		if err != nil || pub.Status == agentapi.StatusLive {
			return pub, err
		}
		select {
		case <-ctx.Done():
			return pub, ctx.Err()
		case <-tick.C:
		}
	}
}

func unpublishCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "unpublish NAME",
		Short: "Take an app off its address; the approval is kept",
		Args:  commandline.Exactly("the NAME of its address"),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := where.open()
			if err != nil {
				return err
			}
			pub, err := client.Unpublish(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return term.json(pub)
			}
			term.line("%s is off. Publishing it again needs no new approval.", args[0])
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// printPublication says how it stands with an app; connected is whether there is an
// address for it to be on.
func printPublication(term *terminal, name string, pub publishedApp, connected bool) {
	switch {
	case pub.Paused:
		term.line("%s has its address, %s, and is paused by its owner: nobody can open it until they resume it, in the menu bar or by: porchlight resume %s", name, pub.URL, name)
	case pub.Status == agentapi.StatusLive:
		term.line("%s is on, at %s", name, pub.URL)
	case pub.Status == agentapi.StatusPending:
		term.line("%s waits for the owner's approval: in the menu bar, or by: porchlight approve %s", name, name)
		if !connected {
			term.line("This computer is not connected yet; it gets its address once it is.")
		}
	default:
		term.line("%s is %s", name, pub.Status)
	}
}

func jsonFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON")
}

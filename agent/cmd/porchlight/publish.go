package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

// pollEvery is how often publish --wait looks; the open tier has no events.
const pollEvery = 500 * time.Millisecond

func publishCommand(c cli) *cobra.Command {
	var req agentapi.PublishRequest
	var wait, tcp bool
	connected := true
	cmd := &cobra.Command{
		Use:   "publish NAME --port PORT",
		Short: "Ask for an address for an app that listens on a local port",
		Long: `Ask for an address for an app that listens on a local port.

The first time, the owner of this computer has to approve it; after that the
same name is on again at once. Until the owner shares it, only the owner can
open it.

With --tcp it is no web app: programs of those it is shared with reach it, with
porchlight reach, and only the owner can ask for it.`,
		Example: `  porchlight publish notes --label Notes --port 8000 --wait
  porchlight publish ssh --tcp --port 22`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 { // as share takes it
				if _, err := strconv.ParseUint(args[1], 10, 16); err == nil {
					return commandline.Usagef("publish takes the port by its flag: porchlight publish %s --port %s", printable(args[0]), args[1])
				}
			}
			return commandline.Exactly("the NAME of its address")(cmd, args)
		},
		PreRunE: func(_ *cobra.Command, args []string) error {
			req.Name = args[0]
			if req.LocalPort == 0 {
				return commandline.Usagef("publish needs --port, where the app listens on 127.0.0.1")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&req.Label, "label", "", "name that people see, 1 to 100 characters (default: the one it has, or NAME)")
	cmd.Flags().IntVar(&req.LocalPort, "port", 0, "port the app listens on, 1 to 65535")
	cmd.Flags().BoolVar(&tcp, "tcp", false, "an app that programs reach over TCP, like ssh or a database")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the owner has decided")
	return programCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, _ []string) (publishedApp, error) {
		if req.Label == "" {
			req.Label = labelOf(ctx, c, req.Name)
		}
		pub, err := publish(ctx, c, client, req, tcp)
		if err != nil {
			return publishedApp{}, err
		}
		if pub.Status == agentapi.StatusPending {
			status, err := client.Status(ctx)
			if err != nil {
				return publishedApp{}, err
			}
			connected = status.Host != ""
		}
		if wait && !connected {
			c.remark("This computer is not connected yet; the app gets its address once it is.")
		}
		approved := wait && pub.Status == agentapi.StatusPending
		if approved {
			c.remark("Waiting for the owner to approve %q in the menu bar, or by: porchlight approve %s", printable(req.Label), req.Name)
			pub, err = waitLive(ctx, client, req.Name, func() {})
			if ctx.Err() != nil {
				return publishedApp{}, fmt.Errorf("Nobody waits for it any more, but %s still waits for the owner. To withdraw the request, type: %s", req.Name, c.typed("unpublish %s", req.Name))
			}
			if err != nil {
				return publishedApp{}, err
			}
		}
		published := publishedApp{Publication: pub, Paused: paused(ctx, client, req.Name, pub)}
		if pub.Status == agentapi.StatusLive && !published.Paused {
			published.does = lookAfter(ctx, c.location, req, approved)
		}
		return published, nil
	}, func(pub publishedApp, _ []string) error {
		printPublication(c.terminal, req, pub, connected)
		return nil
	})
}

// publish asks for an app, as the owner for one that is reached by TCP.
func publish(ctx context.Context, c cli, client *agentapi.Client, req agentapi.PublishRequest, tcp bool) (agentapi.Publication, error) {
	if !tcp {
		return client.Publish(ctx, req)
	}
	owner, err := c.owner(ctx)
	if err != nil {
		return agentapi.Publication{}, err
	}
	return owner.PublishTCP(ctx, req.Name, agentapi.PublishTCP{Label: req.Label, LocalPort: req.LocalPort})
}

// labelOf is what an app is called already, as far as this user may know; else its
// name.
func labelOf(ctx context.Context, c cli, name string) string {
	_, state := ownersState(ctx, c.location)
	if app, err := appIn(state, name); err == nil {
		return app.Label
	}
	return name
}

// publishedApp is what publish prints: the answer of POST /publish, and whether
// the owner keeps everybody out meanwhile, which that does not tell.
type publishedApp struct {
	agentapi.Publication
	Paused bool               `json:"paused,omitempty"`
	does   agentapi.AppHealth // as far as this user may know
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

// waitLive polls as every program does that waits (P2, P3), until the name is
// live or gone, or what was approved before is left of it. It calls looked after each
// look that leaves it waiting.
func waitLive(ctx context.Context, client *agentapi.Client, name string, looked func()) (agentapi.Publication, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		pub, err := client.Publication(ctx, name)
		if agentapi.CodeOf(err) == agentapi.CodeNotFound {
			return pub, agentapi.Errorf(agentapi.CodeNotFound, "The owner denied %q.", name)
		}
		if pub.Status == agentapi.StatusStopped {
			return pub, agentapi.Errorf(agentapi.CodeConflict, "The owner denied the change of %q, or the request was withdrawn. What was approved before is kept, and off until it is published as it was.", name)
		}
		if err != nil || pub.Status == agentapi.StatusLive {
			return pub, err
		}
		looked()
		select {
		case <-ctx.Done():
			return pub, ctx.Err()
		case <-tick.C:
		}
	}
}

func unpublishCommand(c cli) *cobra.Command {
	cmd := verb("unpublish NAME", "Take an app off its address, or its request back; an approval is kept", "the NAME of its address")
	said := "%s is off. Publishing it again needs no new approval."
	return programCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, args []string) (agentapi.Publication, error) {
		pub, err := client.Unpublish(ctx, args[0])
		if err != nil {
			return pub, err
		}
		// A name that was never approved is not there any more.
		if _, err := client.Publication(ctx, args[0]); agentapi.CodeOf(err) == agentapi.CodeNotFound {
			said = "The request for %s is withdrawn. It was never approved, so publishing it again asks the owner."
		}
		return pub, nil
	}, func(_ agentapi.Publication, args []string) error {
		c.line(said, printable(args[0]))
		return nil
	})
}

// printPublication says how it stands with an app; connected is whether there is an
// address for it to be on.
func printPublication(term *terminal, req agentapi.PublishRequest, pub publishedApp, connected bool) {
	name := req.Name
	switch {
	case pub.Paused:
		term.line("%s has its address, %s, and is paused by its owner: nobody can open it until they resume it, in the menu bar or by: porchlight resume %s", name, pub.URL, name)
	case pub.Status == agentapi.StatusLive:
		sayOn(term, name, req.LocalPort, pub.URL, "", pub.does)
	case pub.Status == agentapi.StatusPending:
		term.line("%s waits for the owner's approval: in the menu bar, or by: porchlight approve %s", name, name)
		if !connected {
			term.line("This computer is not connected yet; it gets its address once it is.")
		}
	default:
		term.line("%s is %s", name, pub.Status)
	}
}

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func approveCommand(c cli) *cobra.Command {
	var app agentapi.OwnerApp
	var state agentapi.OwnerState
	var unread int
	cmd := &cobra.Command{
		Use:   "approve NAME",
		Short: "Give an app that asked its address",
		Long: `Give an app that asked its address. What is approved is printed first: the
label, the port, and the program that listens there. Where that is another one by
the time the approval arrives, nothing is approved.

An app that was approved before, has changed and asks again keeps the people who
could open it; with --alone they lose it, and only you can open it.

With --until the approval ends then, as if the app were revoked: its address and
who could open it are forgotten, and it has to ask again. Of an app that is approved
already it changes the end; never takes it away.`,
		Example: `  porchlight approve notes
  porchlight approve notes --until today
  porchlight approve notes --until 18:00
  porchlight approve notes --alone`,
		Args: commandline.Exactly("the NAME of the app"),
	}
	alone := cmd.Flags().Bool("alone", false, "take the app from everybody else who could open it before")
	until := untilFlag(cmd, "the approval ends")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return checkUntil(cmd) }
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, args []string) (pub agentapi.Approved, err error) {
		if state, err = client.State(ctx); err != nil {
			return pub, err
		}
		if app, err = appIn(state, args[0]); err != nil {
			return pub, err
		}
		app = withProgram(ctx, client, app)
		unread = invitedTo(ctx, client, app)
		show := c.line
		if asJSON, _ := cmd.Flags().GetBool("json"); asJSON {
			show = c.remark
		}
		if app.Status == agentapi.StatusPending {
			show("Approving %s.", whatAsks(app))
			if who := app.WhoAsks(printable).String(); who != "" {
				show("%s", who)
			}
			if alike := app.Alike(printable); !alike.IsZero() {
				show("%s", alike)
			}
			if means := app.MeansTCP(); !means.IsZero() {
				show("%s", means)
			}
		}
		return client.ApproveSeen(ctx, app.Name, agentapi.Approval{Seen: new(agentapi.SeenOf(app)), Alone: *alone, Until: *until})
	}, func(pub agentapi.Approved, _ []string) error {
		if *alone {
			app.OpenToCount = 0
		}
		sayApproved(c.terminal, app, unread, pub, state)
		switch ends := askedUntil(*until); {
		case *until == "":
			sayUntil(c.terminal, app)
		case ends != "":
			c.line("It is approved%s, and revoked then.", ends)
		case app.Until != nil:
			c.line("It is approved without an end.")
		}
		if pub.URL != "" && !app.Paused && !app.TCP && state.DarkSince == nil {
			c.nextInvite(app.Name, app.Label)
		}
		return nil
	})
}

func appIn(state agentapi.OwnerState, name string) (agentapi.OwnerApp, error) {
	i := slices.IndexFunc(state.Apps, func(a agentapi.OwnerApp) bool { return a.Name == name })
	if i < 0 {
		return agentapi.OwnerApp{}, agentapi.NoApp()
	}
	return state.Apps[i], nil
}

// withProgram is an app with the program that asks for it: the agent looks on when it is
// asked, and what it finds late is told here, too.
func withProgram(ctx context.Context, client *agentapi.Client, app agentapi.OwnerApp) agentapi.OwnerApp {
	if app.Status != agentapi.StatusPending || app.Listener.Program != "" {
		return app
	}
	if seen, err := client.Port(ctx, app.LocalPort, ""); err == nil && seen.Listener.UserID == app.Listener.UserID {
		app.Listener = seen.Listener
	}
	return app
}

// whatAsks is what an owner looks at before a yes: "Notes on port 8000: python3,
// run by maya".
func whatAsks(a agentapi.OwnerApp) string {
	who := "no program seen there"
	switch l := a.Listener; {
	case l.Program != "" && l.User != "":
		who = printable(l.Program) + ", run by " + printable(l.User)
	case l.User != "":
		who = "a program run by " + printable(l.User)
	case l.Program != "":
		who = printable(l.Program)
	}
	return fmt.Sprintf("%s on port %d: %s", printable(a.Label), a.LocalPort, who)
}

// invitedTo counts who may open an app and has not clicked their invitation.
func invitedTo(ctx context.Context, client *agentapi.Client, app agentapi.OwnerApp) (n int) {
	if app.OpenToCount == 0 {
		return 0
	}
	people, err := client.People(ctx)
	if err != nil {
		return 0 // the server is away, which says nothing of them
	}
	for _, p := range people.Members {
		if p.Status == agentapi.PersonPending && slices.ContainsFunc(p.Apps, func(label string) bool { return strings.EqualFold(label, app.Label) }) {
			n++
		}
	}
	return n
}

// onceClicked ends a sentence about all who can open an app, of whom some are invited.
func onceClicked(unread, all int) string {
	switch {
	case unread == 0:
		return "."
	case unread >= all:
		return invitation + "."
	}
	return fmt.Sprintf(", %d of them%s.", unread, strings.TrimPrefix(invitation, ","))
}

// onlyYou is who else opens an app, or that nobody does, as far as that is known.
func onlyYou(others string, app agentapi.OwnerApp) string {
	switch {
	case others != "" || app.Network:
		return others
	case !app.Listens():
		return "At its address, only you can open it."
	}
	return "Only you can open it."
}

// sayNetwork tells of an app that other computers can open past Porchlight.
func sayNetwork(term *terminal, in agentapi.InNetwork) {
	if in.Network {
		term.line("%s", in.NetworkDetail)
	}
}

// sayApproved tells where an app is by now, and who can open it: app is as it was
// before, less who lost it, and unread how many of those have not clicked their invitation.
func sayApproved(term *terminal, app agentapi.OwnerApp, unread int, pub agentapi.Approved, state agentapi.OwnerState) {
	who := app.OthersWhoOpen(printable)
	switch {
	case who == "":
	case app.Status == agentapi.StatusLive: // it was on already, and nobody got it back
		who += " can open it, too" + onceClicked(unread, app.OpenToCount)
	default:
		who += " can open it again" + onceClicked(unread, app.OpenToCount)
	}
	if pub.Does().Health == agentapi.HealthNothing {
		app.Listener, app.Health = agentapi.Listener{}, agentapi.HealthNothing
	}
	who = onlyYou(who, app)
	if pub.URL == "" {
		term.line("%s is approved. It gets its address once this computer is connected. %s", app.Name, who)
	} else {
		sayOn(term, app.Name, app.LocalPort, pub.URL, who, pub.Does())
	}
	if app.TCP && pub.URL != "" {
		term.line("On any computer, type: porchlight reach %s", pub.Host)
	}
	sayNetwork(term, app.InNetwork)
	if app.Paused {
		term.line("Nobody gets in before you type: porchlight resume %s", app.Name)
	}
	sayClosed(term, state)
}

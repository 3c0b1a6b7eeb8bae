package main

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"

	"porchlight/agent/agentapi"
	"porchlight/agent/doctor"
	"porchlight/agent/procinfo"
)

// How apps do, in words for a terminal. What is so says the agent.

// sayOn tells of an app that is on what keeps visitors from it, and what helps.
func sayOn(term *terminal, name string, port int, url, who string, h agentapi.AppHealth) {
	on := name + " is on, at " + url
	if h.Health == agentapi.HealthNothing {
		on += fmt.Sprintf(", and nothing listens on port %d yet: start it", port)
	}
	if who != "" {
		on += ". " + who
	}
	term.line("%s", on)
	switch {
	case h.Health == agentapi.HealthNothing:
	case h.HealthStatus != 0 && !h.HealthNote:
		term.line("%s", printable(h.Sentence(name))) // a sign-in of its own, or no first page
	default:
		sayHealth(term, name, name, h)
	}
}

// lookAfter is how an app does that was published, as far as whoever published it may
// know: its owner, what the agent knows; anybody, whether something listens. approved is
// true of one that was approved a moment ago and is being asked.
func lookAfter(ctx context.Context, where *location, req agentapi.PublishRequest, approved bool) agentapi.AppHealth {
	client, state := ownersState(ctx, where)
	if client == nil {
		return lookAtPort(req.LocalPort)
	}
	app, _ := appIn(state, req.Name)
	if approved {
		return awaitHealth(ctx, client, app)
	}
	return app.AppHealth
}

// awaitHealth is how an app does that was just put at its address: the agent answers
// once it has asked it.
func awaitHealth(ctx context.Context, client *agentapi.Client, app agentapi.OwnerApp) agentapi.AppHealth {
	if h, err := client.Probe(ctx, app.Name); err == nil {
		return h
	}
	return app.AppHealth // paused, or an agent that is busy
}

// lookAtPort says whether something listens on a port, where the system tells that
// without a connection.
func lookAtPort(port int) (h agentapi.AppHealth) {
	if runtime.GOOS == "darwin" {
		return h
	}
	for _, address := range []netip.Addr{procinfo.IPv4, procinfo.IPv6} {
		if procinfo.ListenerSocket(address, port).UserID != "" {
			return h
		}
	}
	h.Health = agentapi.HealthNothing
	return h
}

// sayAilment tells of an app what keeps visitors from it, and what helps, or how it speaks MCP.
func sayAilment(term *terminal, a agentapi.OwnerApp) {
	if a.Status == agentapi.StatusLive && !a.Paused {
		sayHealth(term, a.Name, a.Label, a.AppHealth)
	}
}

// sayHealth does so in words of the app as called; of another that needs nothing it says
// nothing.
func sayHealth(term *terminal, name, called string, h agentapi.AppHealth) {
	if h.Ails() || len(h.HealthOption) > 0 || h.HealthNote || h.HealthMCP {
		term.line("%s", printable(h.Sentence(called)))
	}
	if advice := doctor.TakeOption(name, h.HealthOption); advice != "" {
		term.line("%s", advice)
	}
}

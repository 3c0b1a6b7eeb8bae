package main

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"time"

	"porchlight/agent/agentapi"
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
	if h.Health != agentapi.HealthNothing && (h.Ails() || len(h.HealthOption) > 0) {
		term.line("%s", printable(h.Sentence(name)))
	}
	if take := takeOption(name, h.HealthOption); take != "" {
		term.line("%s", take)
	}
}

// healthWithin is how long a command waits to learn how an app does that was just
// approved, and healthEvery how often it looks.
const (
	healthWithin = 3 * time.Second
	healthEvery  = 100 * time.Millisecond
)

// lookAfter is how an app does that was published, as far as whoever published it may
// know: its owner, what the agent knows; anybody, whether something listens. approved is
// true of one that was approved a moment ago.
func lookAfter(ctx context.Context, where *location, req agentapi.PublishRequest, approved bool) agentapi.AppHealth {
	state, ok := ownersState(ctx, where)
	if !ok {
		return lookAtPort(req.LocalPort)
	}
	if approved {
		if client, err := where.owner(ctx); err == nil {
			return awaitHealth(ctx, client, req.Name)
		}
	}
	app, _ := appIn(state, req.Name)
	return app.AppHealth
}

// awaitHealth is how an app does that was approved a moment ago and is being asked, where
// the agent asks any.
func awaitHealth(ctx context.Context, client *agentapi.Client, name string) agentapi.AppHealth {
	ctx, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	settings, err := client.Settings(ctx)
	for {
		state, failed := client.State(ctx)
		app, _ := appIn(state, name)
		if err != nil || failed != nil || !settings.Probe || app.URL == "" || app.Health != agentapi.HealthUnknown {
			return app.AppHealth
		}
		select {
		case <-ctx.Done():
			return app.AppHealth
		case <-time.After(healthEvery):
		}
	}
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

// sayAilment tells of an app what keeps visitors from it, and what helps.
func sayAilment(term *terminal, a agentapi.OwnerApp) {
	if a.Status != agentapi.StatusLive || a.Paused || !a.Ails() && len(a.HealthOption) == 0 {
		return
	}
	term.line("%s", printable(a.Sentence(a.Label)))
	if take := takeOption(a.Name, a.HealthOption); take != "" {
		term.line("%s", take)
	}
}

// takeOption says what to type to take a suggestion; empty for none.
func takeOption(name string, change map[string]any) string {
	var flags strings.Builder
	for _, o := range agentapi.Options {
		switch value := change[o.Name].(type) {
		case nil:
		case bool:
			flags.WriteString(" --" + flagOf(o) + strings.TrimPrefix(fmt.Sprintf("=%t", value), "=true"))
		default:
			fmt.Fprintf(&flags, " --%s %s", flagOf(o), printable(fmt.Sprint(value)))
		}
	}
	if flags.Len() == 0 {
		return ""
	}
	return "To take that option, type: porchlight options " + name + flags.String()
}

// checkHealth is what doctor says of a live app. ask has the agent ask it, unless it
// did a moment ago.
func checkHealth(ctx context.Context, name string, app agentapi.OwnerApp, ask asker) []finding {
	h, err := ask(ctx, app.Name)
	if err != nil {
		h = app.AppHealth // an agent that is busy, or of an earlier version
	}
	f := finding{name, wrong, h.Sentence(app.Label), healthNext(app.Name, h)}
	switch {
	case h.Health == agentapi.HealthUnknown:
		f.State, f.Text = note, fmt.Sprintf("Whether %s answers on port %d is not known.", app.Label, app.LocalPort)
	case !h.Ails() && len(h.HealthOption) == 0:
		f.State = fine
	case !h.Ails():
		f.State = note
	}
	found := []finding{f}
	if last := h.LastError; last != nil {
		found = append(found, finding{name, note, fmt.Sprintf("The last visitor whom %s failed came at %s: %s", app.Label, moment(last.At), last.Text), ""})
	}
	return found
}

// asker asks an app how it does.
type asker func(ctx context.Context, name string) (agentapi.AppHealth, error)

func healthNext(name string, h agentapi.AppHealth) string {
	if take := takeOption(name, h.HealthOption); take != "" {
		return take
	}
	switch h.Health {
	case agentapi.HealthUnknown:
		return "To have Porchlight ask your apps, type: porchlight settings --probe"
	case agentapi.HealthNothing:
		return "Start it, or publish it anew with the port it listens on."
	case agentapi.HealthAnswers:
		return ""
	}
	return "Look into its log, and start it again."
}

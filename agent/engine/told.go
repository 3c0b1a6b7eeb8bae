package engine

import (
	"cmp"
	"fmt"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/agent/upstream"
)

// What the owner is told of an app that changed without asking.

// record notes whom an approval is for that was given before that was kept: who
// listens first. The owner is told, once.
func record(app *store.App, e event) agentapi.Notice {
	app.ApprovedFor = &store.ListenerUser{ID: e.Listener.UserID, Name: e.Listener.User}
	return agentapi.Notice{At: e.At, Kind: agentapi.NoticeListener, App: app.Name, Text: fmt.Sprintf(
		"%s is answered on port %d by %s. From now on, a program of another user there waits for your approval.",
		app.Label, app.LocalPort, programOf(e.Listener))}
}

// changes tells the owner what an approved app altered about itself without
// asking. An app that was stopped counts too: a program that takes its name over
// would stop it first.
func changes(before, after store.App, at time.Time) []agentapi.Notice {
	var notices []agentapi.Notice
	add := func(kind, text string) {
		notices = append(notices, agentapi.Notice{At: at, Kind: kind, App: after.Name, Text: text})
	}
	if before.Label != after.Label {
		add("renamed", fmt.Sprintf("%s is now called %s.", before.Label, after.Label))
	}
	switch was, is := before.Listener, after.Listener; {
	case was.Program != "" && is.Program != "" && was.Program != is.Program:
		add("program-changed", fmt.Sprintf("%s is now answered by %s on port %d. Before, it was %s on port %d.",
			after.Label, is.Program, after.LocalPort, was.Program, before.LocalPort))
	case was.User != "" && is.User != "" && was.User != is.User:
		// The system does not name the programs of other users.
		add("program-changed", fmt.Sprintf("%s is now answered by a program of the user %s on port %d. Before, it was one of %s on port %d.",
			after.Label, is.User, after.LocalPort, was.User, before.LocalPort))
	case before.LocalPort != after.LocalPort:
		add("port-changed", fmt.Sprintf("%s now answers on port %d. Before, it was port %d.", after.Label, after.LocalPort, before.LocalPort))
	case before.Address != after.Address:
		add("port-changed", fmt.Sprintf("%s now answers on port %d of %s. Before, it was %s.",
			after.Label, after.LocalPort, cmp.Or(after.Address, upstream.IPv4), cmp.Or(before.Address, upstream.IPv4)))
	}
	return notices
}

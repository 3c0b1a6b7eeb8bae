package engine

import (
	"cmp"
	"strconv"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/agent/upstream"
	"porchlight/internal/words"
)

// What the owner is told of an app that changed without asking.

// record notes whom an approval is for that was given before that was kept: who
// listens first. The owner is told, once.
func record(app *store.App, e event) agentapi.Notice {
	app.ApprovedFor = &store.ListenerUser{ID: e.Listener.UserID, Name: e.Listener.User}
	text := words.Of("%[1]s is answered on port %[2]s by %[3]s. From now on, a program of another user there waits for your approval.",
		app.Label, strconv.Itoa(app.LocalPort), programOf(e.Listener))
	return agentapi.Notice{At: e.At, Kind: agentapi.NoticeListener, App: app.Name, Text: text.String(), Words: words.Text{text}}
}

// changes tells the owner what an approved app altered about itself without
// asking. An app that was stopped counts too: a program that takes its name over
// would stop it first.
func changes(before, after store.App, at time.Time) []agentapi.Notice {
	var notices []agentapi.Notice
	add := func(kind string, text words.Sentence) {
		notices = append(notices, agentapi.Notice{At: at, Kind: kind, App: after.Name, Text: text.String(), Words: words.Text{text}})
	}
	now, then := strconv.Itoa(after.LocalPort), strconv.Itoa(before.LocalPort)
	if before.Label != after.Label {
		add(agentapi.ActivityRenamed, words.Of("%[1]s is now called %[2]s.", before.Label, after.Label))
	}
	switch was, is := before.Listener, after.Listener; {
	case was.Program != "" && is.Program != "" && was.Program != is.Program:
		add(agentapi.ActivityProgramChanged, words.Of("%[1]s is now answered by %[2]s on port %[3]s. Before, it was %[4]s on port %[5]s.",
			after.Label, is.Program, now, was.Program, then))
	case was.User != "" && is.User != "" && was.User != is.User:
		// The system does not name the programs of other users.
		add(agentapi.ActivityProgramChanged, words.Of("%[1]s is now answered by a program of the user %[2]s on port %[3]s. Before, it was one of %[4]s on port %[5]s.",
			after.Label, is.User, now, was.User, then))
	case before.LocalPort != after.LocalPort:
		add(agentapi.ActivityPortChanged, words.Of("%[1]s now answers on port %[2]s. Before, it was port %[3]s.", after.Label, now, then))
	case before.Address != after.Address:
		add(agentapi.ActivityPortChanged, words.Of("%[1]s now answers on port %[2]s of %[3]s. Before, it was %[4]s.",
			after.Label, now, cmp.Or(after.Address, upstream.IPv4), cmp.Or(before.Address, upstream.IPv4)))
	}
	return notices
}

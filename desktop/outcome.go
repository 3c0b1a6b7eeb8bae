package desktop

import (
	"fmt"
	"strings"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
	"porchlight/desktop/verbs"
)

// keyOnce is a key that no other note has.
func (a *app) keyOnce() string { return fmt.Sprintf("done-%d", a.noted.Add(1)) }

// approved is the note about an app that is on now, with what the owner does next.
// Who can open it is what the snapshot said of the request.
func (a *app) approved(act verbs.Action, app agentapi.Approved) note {
	label := language.Named(act.Label)
	n := note{key: keyApproved, kind: kindRequest, click: verbs.Action{Verb: verbs.Show, View: verbs.ViewApps, Name: act.Name}}
	if app.Status == agentapi.StatusPending {
		n.title, n.body = language.Say("%s is approved", label), language.Say("It gets its address once this computer is connected.")
		return n
	}
	host := strings.TrimPrefix(app.URL, "https://")
	n.title = language.Say("%s is on", label)
	n.buttons = []button{
		{language.Say("Open"), verbs.Action{Verb: verbs.Open, Name: act.Name}},
		{language.Say("Copy link"), verbs.Action{Verb: verbs.Copy, Name: act.Name, Text: app.URL}},
		{language.Say("Invite…"), verbs.Action{Verb: verbs.Show, View: verbs.ViewInvite, Name: act.Name}},
	}
	before := a.seenApp(act.Name)
	switch {
	case app.Does().Ails(), app.Does().HealthNote:
		n.body = language.Isolate(app.HealthDetail)
	case before.Listens() && !before.Network && (act.Verb == verbs.ApproveAlone || before.OpenToCount == 0):
		n.body = language.Say("%s. Only you can open it.", host)
	default:
		n.body = host
	}
	if before.Network {
		n.body += "\n" + before.NetworkDetail
	}
	if app.URL == "" {
		n.buttons = n.buttons[:0]
	}
	return n
}

// seenApp is an app as the snapshot has it.
func (a *app) seenApp(name string) agentapi.OwnerApp {
	s, _ := a.snapshot()
	for _, app := range s.Apps {
		if app.Name == name {
			return app
		}
	}
	return agentapi.OwnerApp{}
}

// ended tells that access ended, and what that closed. A later one takes an
// earlier one's place: only the last is news.
func ended(act verbs.Action, title string, closed agentapi.Closed) note {
	n := note{key: keyEnded, kind: kindAccess, title: title, body: language.ClosedWords(closed), click: verbs.Action{Verb: verbs.Show, View: verbs.ViewApps}}
	switch act.Verb {
	case verbs.Dark:
		n.buttons = []button{{language.Say("Light up again"), verbs.Action{Verb: verbs.Light}}}
	case verbs.Pause:
		n.buttons = []button{{language.Say("Resume"), verbs.Action{Verb: verbs.Resume, Name: act.Name, Label: act.Label}}}
	case verbs.RevokeGrant:
		n.click.View = verbs.ViewClients
	}
	return n
}

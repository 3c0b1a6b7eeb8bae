package desktop

import (
	"fmt"
	"strings"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
)

// keyOnce is a key that no other note has.
func (a *app) keyOnce() string { return fmt.Sprintf("done-%d", a.noted.Add(1)) }

// approved is the note about an app that is on now, with what the owner does next.
// Who can open it is what the snapshot said of the request.
func (a *app) approved(act action, app agentapi.Approved) note {
	label := language.Named(act.label)
	n := note{key: keyApproved, kind: kindRequest, click: action{verb: doShow, view: viewApps, name: act.name}}
	if app.Status == agentapi.StatusPending {
		n.title, n.body = language.Say("%s is approved", label), language.Say("It gets its address once this computer is connected.")
		return n
	}
	host := strings.TrimPrefix(app.URL, "https://")
	n.title = language.Say("%s is on", label)
	n.buttons = []button{
		{language.Say("Open"), action{verb: doOpen, name: act.name}},
		{language.Say("Copy link"), action{verb: doCopy, name: act.name, text: app.URL}},
		{language.Say("Invite…"), action{verb: doShow, view: viewInvite, name: act.name}},
	}
	before := a.seenApp(act.name)
	switch {
	case app.Does().Ails(), app.Does().HealthNote:
		n.body = language.Isolate(app.HealthDetail)
	case before.Listens() && !before.Network && (act.verb == doApproveAlone || before.OpenToCount == 0):
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
func ended(act action, title string, closed agentapi.Closed) note {
	n := note{key: keyEnded, kind: kindAccess, title: title, body: language.ClosedWords(closed), click: action{verb: doShow, view: viewApps}}
	switch act.verb {
	case doDark:
		n.buttons = []button{{language.Say("Light up again"), action{verb: doLight}}}
	case doPause:
		n.buttons = []button{{language.Say("Resume"), action{verb: doResume, name: act.name, label: act.label}}}
	case doRevokeGrant:
		n.click.view = viewClients
	}
	return n
}

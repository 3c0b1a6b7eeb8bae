package notes

import (
	"strings"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
	"porchlight/desktop/verbs"
)

// Approved is the note about an app that is on now, with what the owner does next.
// Who can open it is what the snapshot before said of the request.
func Approved(act verbs.Action, before agentapi.OwnerApp, app agentapi.Approved) Note {
	label := language.Named(act.Label)
	n := Note{Key: keyApproved, Kind: agentapi.KindRequest, Click: verbs.Action{Verb: verbs.Show, View: verbs.ViewApps, Name: act.Name}}
	if app.Status == agentapi.StatusPending {
		n.Title, n.Body = language.Say("%s is approved", label), language.Say("It gets its address once this computer is connected.")
		return n
	}
	host := strings.TrimPrefix(app.URL, "https://")
	n.Title = language.Say("%s is on", label)
	if act.Until == agentapi.UntilToday {
		n.Title = language.Say("%s is on until midnight", label)
	}
	n.Buttons = []Button{
		{language.Say("Open"), verbs.Action{Verb: verbs.Open, Name: act.Name}},
		{language.Say("Copy link"), verbs.Action{Verb: verbs.Copy, Name: act.Name, Text: app.URL}},
		{language.Say("Invite…"), verbs.Action{Verb: verbs.Show, View: verbs.ViewInvite, Name: act.Name}},
	}
	switch {
	case app.Does().Ails(), app.Does().HealthNote:
		n.Body = language.Isolate(app.HealthDetail)
	case before.Listens() && !before.Network && (act.Verb == verbs.ApproveAlone || before.OpenToCount == 0):
		n.Body = language.Say("%s. Only you can open it.", host)
	default:
		n.Body = host
	}
	if before.Network {
		n.Body += "\n" + before.NetworkDetail
	}
	if app.URL == "" {
		n.Buttons = n.Buttons[:0]
	}
	return n
}

// Ended tells that access ended, and what that closed. A later one takes an
// earlier one's place: only the last is news.
func Ended(act verbs.Action, title string, closed agentapi.Closed) Note {
	n := Note{Key: keyEnded, Kind: agentapi.KindAccess, Title: title, Body: language.ClosedWords(closed), Click: verbs.Action{Verb: verbs.Show, View: verbs.ViewApps}}
	switch act.Verb {
	case verbs.Dark:
		n.Buttons = []Button{{language.Say("Light up again"), verbs.Action{Verb: verbs.Light}}}
	case verbs.Pause:
		n.Buttons = []Button{{language.Say("Resume"), verbs.Action{Verb: verbs.Resume, Name: act.Name, Label: act.Label}}}
	case verbs.RevokeGrant:
		n.Click.View = verbs.ViewClients
	}
	return n
}

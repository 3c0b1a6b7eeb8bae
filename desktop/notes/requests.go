package notes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
	"porchlight/desktop/verbs"
)

// requests tells the owner about apps that want an address: each by itself while they
// are few, with one note while they are many, and that they keep coming where they
// come and go.
func (a *Announcer) requests(c *Changes, s agentapi.OwnerState) {
	loud, untold := a.compare(s)
	a.drop(c, func(was *toldRequest) bool { return !was.waiting })
	a.forget()
	if len(loud) > maxNotes {
		a.tellMany(c, loud)
		return
	}
	one := len(untold) > 0 && a.mayTell(agentapi.KindRequest, len(untold))
	calmIn := time.Minute - a.now().Sub(a.groupedAt)
	switch {
	case a.flood && calmIn > 0:
		c.lookAgain(calmIn)
	case a.grouped > 0 && (one || len(untold) == 0):
		c.Drop = append(c.Drop, keyRequests)
		a.grouped, a.flood = 0, false
	case len(untold) > 0 && !one && a.grouped == 0:
		// They come and go: one note for all of them, which stays as it is.
		a.grouped, a.groupedAt, a.flood = len(loud), a.now(), true
		c.Show = append(c.Show, thatShows(verbs.ViewApps, Note{
			Key: keyRequests, Kind: agentapi.KindRequest, Title: language.Say("Apps keep asking for an address"),
			Body: language.Say("The menu lists those that wait."),
		}))
	}
	if !one {
		return
	}
	for _, app := range untold {
		a.requested[app.Name].shown = true
		c.Show = append(c.Show, requestNote(app, s.Account.Host))
	}
}

// compare returns the requests that may be announced, those that wait longest first,
// and which of them were not announced before.
func (a *Announcer) compare(s agentapi.OwnerState) (loud, untold []agentapi.OwnerApp) {
	now := a.now()
	waiting := map[string]bool{}
	for _, app := range s.Apps {
		if app.Status != agentapi.StatusPending || app.Quiet {
			continue
		}
		waiting[app.Name] = true
		loud = append(loud, app)
		was, known := a.requested[app.Name]
		if !known {
			was = &toldRequest{}
			a.requested[app.Name] = was
		}
		changed := was.waiting && was.seen != verbs.SeenOf(app)
		again := !was.waiting && now.Sub(was.asked) >= askedAgain
		if !known || changed || again {
			untold = append(untold, app)
			was.seen, was.asked = verbs.SeenOf(app), now
		}
	}
	for name, was := range a.requested { // asked again too soon: the menu shows it, no note
		was.waiting = waiting[name]
	}
	inTurn := func(x, y agentapi.OwnerApp) int { return x.RequestedAt.Compare(y.RequestedAt) }
	slices.SortStableFunc(untold, inTurn)
	slices.SortStableFunc(loud, inTurn)
	return loud, untold
}

// drop takes away the notes of those requests.
func (a *Announcer) drop(c *Changes, which func(*toldRequest) bool) {
	for name, was := range a.requested {
		if was.shown && which(was) {
			c.Drop = append(c.Drop, keyRequest(name))
			was.shown = false
		}
	}
}

// forget drops requests that are long gone: a program may ask under ever new
// names.
func (a *Announcer) forget() {
	for name, was := range a.requested {
		if !was.waiting && a.now().Sub(was.asked) >= askedAgain {
			delete(a.requested, name)
		}
	}
}

// tellMany has one note speak of all of them, and keeps its count right, though
// not by the second.
func (a *Announcer) tellMany(c *Changes, loud []agentapi.OwnerApp) {
	a.drop(c, func(*toldRequest) bool { return true })
	if a.grouped == len(loud) {
		return
	}
	if left := recount - a.now().Sub(a.groupedAt); a.grouped != 0 && left > 0 {
		c.lookAgain(left)
		return
	}
	a.grouped, a.groupedAt, a.flood = len(loud), a.now(), false
	var labels []string
	for _, app := range loud[:maxNotes] {
		labels = append(labels, language.Named(app.Label))
	}
	c.Show = append(c.Show, thatShows(verbs.ViewApps, Note{
		Key: keyRequests, Kind: agentapi.KindRequest, Title: language.Count(len(loud), "%d app wants an address", "%d apps want an address"), Body: listed(labels, len(loud)),
	}))
}

func requestNote(app agentapi.OwnerApp, rootHost string) Note {
	body := []string{fmt.Sprintf("%s, %s.", language.HostOf(app, rootHost), language.WhoListens(app))}
	if changed := app.Changed(language.Named); !changed.IsZero() {
		body = []string{language.Spoken().Tell(changed), language.Say("Nobody can open it until you decide.")}
	}
	if who := language.Spoken().TellAll(app.WhoAsks(language.Named)); who != "" {
		body = append(body, who)
	}
	if alike := app.Alike(language.Named); !alike.IsZero() {
		body = append(body, language.Spoken().Tell(alike))
	}
	if means := app.MeansTCP(); !means.IsZero() {
		body = append(body, language.Spoken().Tell(means))
	}
	buttons := []Button{{language.Say("Approve"), verbs.ApproveOf(app)}}
	if others := app.Others(language.Named); !others.IsZero() {
		body = append(body, language.Say("If you approve it, %s can open it again.", others))
		buttons = append(buttons, Button{language.Say("Approve for me alone"), verbs.AloneOf(app)})
	} else if app.ApprovedListener == nil && !app.Network {
		body = append(body, language.Say("Then only you can open it."))
	}
	if len(buttons) == 1 { // some desktops show no more than three
		buttons = append(buttons, Button{language.Say("For today"), verbs.TodayOf(app)})
	}
	if app.Network {
		body = append(body, app.NetworkDetail)
	}
	return Note{
		Key:     keyRequest(app.Name),
		Kind:    agentapi.KindRequest,
		Title:   language.Wants(app),
		Body:    strings.Join(body, " "),
		Buttons: append(buttons, Button{language.Say("Deny"), verbs.Action{Verb: verbs.Deny, Name: app.Name}}),
		Click:   verbs.Action{Verb: verbs.Show, View: verbs.ViewApps},
	}
}

package desktop

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
func (a *announcer) requests(c *changes, s agentapi.OwnerState) {
	loud, untold := a.compare(s)
	for name, was := range a.requested {
		if !was.waiting && was.shown {
			c.drop = append(c.drop, keyRequest(name))
			was.shown = false
			a.requested[name] = was
		}
	}
	a.forget()
	if len(loud) > maxNotes {
		a.tellMany(c, loud)
		return
	}
	one := len(untold) > 0 && a.mayTell(kindRequest, len(untold))
	calmIn := time.Minute - a.now().Sub(a.groupedAt)
	switch {
	case a.flood && calmIn > 0:
		c.lookAgain(calmIn)
	case a.grouped > 0 && (one || len(untold) == 0):
		c.drop = append(c.drop, keyRequests)
		a.grouped, a.flood = 0, false
	case len(untold) > 0 && !one && a.grouped == 0:
		// They come and go: one note for all of them, which stays as it is.
		a.grouped, a.groupedAt, a.flood = len(loud), a.now(), true
		c.show = append(c.show, note{
			key: keyRequests, kind: kindRequest, title: language.Say("Apps keep asking for an address"),
			body:    language.Say("The menu lists those that wait."),
			buttons: []button{{language.Say("Show"), verbs.Action{Verb: verbs.Show, View: verbs.ViewApps}}},
			click:   verbs.Action{Verb: verbs.Show, View: verbs.ViewApps},
		})
	}
	if !one {
		return
	}
	for _, app := range untold {
		was := a.requested[app.Name]
		was.shown = true
		a.requested[app.Name] = was
		c.show = append(c.show, requestNote(app, s.Account.Host))
	}
}

// compare returns the requests that may be announced, those that wait longest first,
// and which of them were not announced before.
func (a *announcer) compare(s agentapi.OwnerState) (loud, untold []agentapi.OwnerApp) {
	now := a.now()
	waiting := map[string]bool{}
	for _, app := range s.Apps {
		if app.Status != agentapi.StatusPending || app.Quiet {
			continue
		}
		waiting[app.Name] = true
		loud = append(loud, app)
		was, known := a.requested[app.Name]
		changed := known && was.waiting && was.seen != verbs.SeenOf(app)
		again := known && !was.waiting && now.Sub(was.at) >= askedAgain
		if !known || changed || again {
			untold = append(untold, app)
			a.requested[app.Name] = toldRequest{seen: verbs.SeenOf(app), at: now, waiting: true, shown: was.shown}
		} else if !was.waiting {
			was.waiting = true // asked again too soon: the menu shows it, no note
			a.requested[app.Name] = was
		}
	}
	for name, was := range a.requested {
		if !waiting[name] {
			was.waiting = false
			a.requested[name] = was
		}
	}
	inTurn := func(x, y agentapi.OwnerApp) int { return x.RequestedAt.Compare(y.RequestedAt) }
	slices.SortStableFunc(untold, inTurn)
	slices.SortStableFunc(loud, inTurn)
	return loud, untold
}

// forget drops requests that are long gone: a program may ask under ever new
// names.
func (a *announcer) forget() {
	for name, was := range a.requested {
		if !was.waiting && a.now().Sub(was.at) >= askedAgain {
			delete(a.requested, name)
		}
	}
}

// tellMany has one note speak of all of them, and keeps its count right, though
// not by the second.
func (a *announcer) tellMany(c *changes, loud []agentapi.OwnerApp) {
	for name, was := range a.requested {
		if was.shown {
			c.drop = append(c.drop, keyRequest(name))
			was.shown = false
			a.requested[name] = was
		}
	}
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
	c.show = append(c.show, note{
		key: keyRequests, kind: kindRequest, title: language.Count(len(loud), "%d app wants an address", "%d apps want an address"), body: listed(labels, len(loud)),
		buttons: []button{{language.Say("Show"), verbs.Action{Verb: verbs.Show, View: verbs.ViewApps}}},
		click:   verbs.Action{Verb: verbs.Show, View: verbs.ViewApps},
	})
}

func requestNote(app agentapi.OwnerApp, rootHost string) note {
	body := []string{fmt.Sprintf("%s, %s.", language.HostOf(app, rootHost), language.WhoListens(app))}
	if changed := app.Changed(language.Named); !changed.IsZero() {
		body = []string{language.Spoken().Tell(changed), language.Say("Nobody can open it until you decide.")}
	}
	if by := language.AskedBy(app); by != "" {
		body = append(body, by)
	}
	if alike := app.Alike(language.Named); !alike.IsZero() {
		body = append(body, language.Spoken().Tell(alike))
	}
	buttons := []button{{language.Say("Approve"), verbs.ApproveOf(app)}}
	if others := app.Others(language.Named); !others.IsZero() {
		body = append(body, language.Say("If you approve it, %s can open it again.", others))
		buttons = append(buttons, button{language.Say("Approve for me alone"), verbs.AloneOf(app)})
	} else if app.ApprovedListener == nil && !app.Network {
		body = append(body, language.Say("Only you could open it."))
	}
	if app.Network {
		body = append(body, app.NetworkDetail)
	}
	return note{
		key:     keyRequest(app.Name),
		kind:    kindRequest,
		title:   language.Wants(app),
		body:    strings.Join(body, " "),
		buttons: append(buttons, button{language.Say("Deny"), verbs.Action{Verb: verbs.Deny, Name: app.Name}}),
		click:   verbs.Action{Verb: verbs.Show, View: verbs.ViewApps},
	}
}

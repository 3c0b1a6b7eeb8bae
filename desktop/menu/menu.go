// Package menu draws the menu of the tray: a picture of how things are in, lines out. It
// asks nobody anything, keeps nothing and knows no panel; what a line does is a word of
// desktop/verbs.
package menu

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/ownersecret"
	"porchlight/desktop/language"
	"porchlight/desktop/verbs"
)

// Draw is the menu of a picture.
func Draw(p Picture) Menu {
	requests, apps := sorted(p.Apps)
	asking := slices.DeleteFunc(slices.Clone(p.Users), func(u agentapi.LocalUser) bool { return u.Standing != agentapi.UserAsks })
	f := frame{
		address: Line{Text: language.Shorten(p.Account.Host), Do: verbs.Action{Verb: verbs.Copy, Text: p.Account.URL}},
		people:  Line{Text: language.Say("People…"), Do: verbs.Action{Verb: verbs.Show, View: verbs.ViewPeople}},
		clients: clientsOf(p.Grants, p.Now),
		add:     Line{Text: language.Say("Add an app…"), Do: verbs.Action{Verb: verbs.Show, View: verbs.ViewAdd}},
		find:    language.Say("Find or do…"),
		quit:    quitOf(p),
	}
	waiting := len(requests) + len(asking) + len(p.Knocks)
	f.icon, f.status, f.trouble = standing(p, waiting)
	f.waits(p, requests, asking)
	f.here(p)
	if len(apps) > 0 {
		f.appsHead = language.Say("Apps")
	}
	for _, at := range mostUsed(apps) {
		f.apps = append(f.apps, appOf(p, apps[at]))
	}
	f.moreApps = more(len(apps)-maxApps, verbs.ViewApps)
	f.lights(p)
	if on := slices.ContainsFunc(apps, isLive); on && p.Secret == nil && p.AccessUntil == nil {
		f.invite = Line{Text: language.Say("Invite someone…"), Do: verbs.Action{Verb: verbs.Show, View: verbs.ViewInvite}}
	}
	if p.Share.Port != 0 && p.Secret == nil {
		f.share = shareOf(p.Share)
	}
	if p.Secret != nil {
		f.withoutSecret(p.Secret)
	}
	if p.Keys != "" {
		f.find = language.Say("Find or do… (%s)", language.Shorten(p.Keys))
	}
	m := f.draw(p.AtLogin)
	if m.Tip = m.Lines[0].Text; waiting > 0 {
		m.Tip = language.Say("%[1]s, %[2]d waiting", m.Tip, waiting)
	}
	return m
}

// Empty is the menu while there is no snapshot: starting, stopping.
func Empty(icon, status string, atLogin bool) Menu {
	m := frame{
		icon: icon, status: language.Shorten(status),
		people: Line{Text: language.Say("People…"), Do: verbs.Action{Verb: verbs.Show, View: verbs.ViewPeople}}, clients: clientsOf(nil, time.Time{}),
		find: language.Say("Find or do…"), quit: quitOf(Picture{}),
	}.draw(atLogin)
	m.Tip = m.Lines[0].Text
	return m
}

// frame is what a menu is put together from; draw gives every part its place.
type frame struct {
	icon, status            string
	trouble                 []string
	secret, light, health   Line // what can be done about how things are
	address                 Line
	waitingHead, hereHead   string
	waiting, visitors       []Line
	moreWaiting, moreHere   Line
	appsHead                string
	apps                    []Line
	moreApps, share, add    Line
	invite, people, clients Line
	dark                    Line
	find                    string
	quit                    [2]Line // at once, and one that asks: one of them is there
}

func (f frame) draw(atLogin bool) Menu {
	lines := []Line{{Text: f.status}}
	for i := range maxTrouble {
		var l Line
		if i < len(f.trouble) {
			l.Text = f.trouble[i]
		}
		lines = append(lines, l)
	}
	lines = append(lines, f.secret, f.light, f.health, f.address, Line{Text: f.waitingHead})
	lines = append(lines, padded(f.waiting, maxRequests)...)
	lines = append(lines, f.moreWaiting, Line{Text: f.hereHead})
	lines = append(lines, padded(f.visitors, maxHere)...)
	lines = append(lines, f.moreHere, separator, Line{Text: f.appsHead})
	lines = append(lines, padded(f.apps, maxApps)...)
	lines = append(lines, f.moreApps, f.share, f.add, separator, f.invite, f.people, f.clients, separator, f.dark,
		Line{Text: f.find, Do: verbs.Action{Verb: verbs.Show, View: verbs.ViewFind}},
		Line{Text: language.Say("Open Porchlight"), Do: verbs.Action{Verb: verbs.Show}},
		Line{Text: language.Say("Start at login"), Do: verbs.Action{Verb: verbs.Login, On: !atLogin}, Mark: marked(atLogin)},
		separator, f.quit[0], f.quit[1])
	return Menu{Icon: f.icon, Lines: lines}
}

// lights offers to go dark where something is on, and to light up again in the dark.
func (f *frame) lights(p Picture) {
	switch {
	case p.DarkSince != nil:
		f.light = Line{Text: language.Say("Light up again"), Do: verbs.Action{Verb: verbs.Light}}
	case slices.ContainsFunc(p.Apps, isLive):
		f.dark = Line{Text: language.Say("Go dark"), Do: verbs.Action{Verb: verbs.Dark}}
	}
	if p.Trouble != "" {
		f.health = Line{Text: language.Say("Health…"), Do: verbs.Action{Verb: verbs.Show, View: verbs.ViewHealth}}
	}
}

// sorted splits the apps. The request that waits longest comes first, so that a
// new one never moves what the owner is about to click; apps stay in the agent's order.
func sorted(all []agentapi.OwnerApp) (requests, apps []agentapi.OwnerApp) {
	for _, a := range all {
		if a.Status == agentapi.StatusPending {
			requests = append(requests, a)
		} else {
			apps = append(apps, a)
		}
	}
	slices.SortStableFunc(requests, func(a, b agentapi.OwnerApp) int { return a.RequestedAt.Compare(b.RequestedAt) })
	return requests, apps
}

// mostUsed are the places of the apps that have a line: of more than the menu has room
// for, those opened most. They keep the order of all, by label, so that a visit moves no
// line.
func mostUsed(apps []agentapi.OwnerApp) []int {
	places := make([]int, len(apps))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(apps[b].Visits, apps[a].Visits) })
	places = places[:min(len(places), maxApps)]
	slices.Sort(places)
	return places
}

// waits lists what waits for the owner: other users, apps and people. Strangers can
// knock, so that they never take the apps' places. Without the owner secret nothing
// can be answered.
func (f *frame) waits(p Picture, requests []agentapi.OwnerApp, asking []agentapi.LocalUser) {
	all := len(requests) + len(asking) + len(p.Knocks)
	switch {
	case all == 0:
		return
	case p.Secret != nil:
		f.waitingHead = language.Count(all, "%d waits for you: unlock to answer", "%d wait for you: unlock to answer")
		return
	}
	f.waitingHead = language.Say("Waiting for you")
	asking = asking[:min(len(asking), maxAsking)]
	places := maxRequests - len(asking)
	knocks := p.Knocks[:min(len(p.Knocks), max(places-len(requests), places/2))]
	requests = requests[:min(len(requests), places-len(knocks))]
	for _, a := range requests {
		f.waiting = append(f.waiting, requestOf(p, a))
	}
	for _, k := range knocks {
		f.waiting = append(f.waiting, knockOf(k, p))
	}
	for _, u := range asking {
		f.waiting = append(f.waiting, userOf(u))
	}
	f.moreWaiting = more(all-len(f.waiting), verbs.ViewApps)
}

// here lists who has something open.
func (f *frame) here(p Picture) {
	if len(p.Visitors) == 0 {
		return
	}
	f.hereHead = language.Say("Here now")
	for _, v := range p.Visitors[max(0, len(p.Visitors)-maxHere):] { // those who came last
		f.visitors = append(f.visitors, visitorOf(p, v))
	}
	f.moreHere = more(len(p.Visitors)-maxHere, verbs.ViewActivity)
}

// withoutSecret has a menu say first why the owner secret is not there, and offer
// what helps.
func (f *frame) withoutSecret(why error) {
	f.icon = IconTrouble
	f.trouble = append([]string{f.status}, f.trouble...)
	f.trouble = f.trouble[:min(len(f.trouble), maxTrouble)]
	if errors.Is(why, ownersecret.ErrUnavailable) {
		f.status = language.Say("There is no keychain here")
		f.secret = Line{Text: language.Say("Keep the owner secret in a file"), Do: verbs.Action{Verb: verbs.SecretFile}}
		return
	}
	f.status = language.Say("Your keychain is locked")
	f.secret = Line{Text: language.Say("Unlock…"), Do: verbs.Action{Verb: verbs.Unlock}}
}

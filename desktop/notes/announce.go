package notes

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
	"porchlight/desktop/verbs"
)

// Next looks at a snapshot. What is of a quiet kind counts as told; q is asked
// only where there is something to tell.
func (a *Announcer) Next(s agentapi.OwnerState, q func() []string) Changes {
	var c Changes
	a.requests(&c, s)
	a.knocks(&c, s, q)
	a.account(&c, s)
	a.notices(&c, s, q)
	a.firstUses(&c, s)
	a.grants(&c, s)
	a.trouble(&c, s)
	c.Show = slices.DeleteFunc(c.Show, func(n Note) bool { return slices.Contains(q(), n.Kind) })
	slices.Sort(c.Drop)
	return c
}

func (a *Announcer) notices(c *Changes, s agentapi.OwnerState, q func() []string) {
	var untold []agentapi.Notice
	newest := a.Told.Notice
	for _, n := range s.Notices {
		if n.ID <= a.Told.Notice {
			continue
		}
		newest = max(newest, n.ID)
		if !slices.Contains(q(), kindOf(n)) {
			untold = append(untold, n)
		}
	}
	a.Told.Notice = newest
	slices.SortFunc(untold, func(x, y agentapi.Notice) int { return cmp.Compare(x.ID, y.ID) })
	ends := 0
	for _, n := range untold {
		if n.Ended != nil {
			ends++
		}
	}
	offered := ends > 0 && a.mayTell(agentapi.KindEnded, ends)
	for _, n := range untold {
		// Each a question of its own; and a note of several shares that ended could prolong none.
		if n.Kind == agentapi.NoticeUser || n.Kind == agentapi.NoticeBrowser || n.Kind == agentapi.NoticePasskey || n.Ended != nil && offered {
			c.Show = append(c.Show, a.noticeNote(n, s))
			continue
		}
		a.gather(n)
	}
	a.tellGathered(c, s)
}

// noticeNote is the note of one notice.
func (a *Announcer) noticeNote(n agentapi.Notice, s agentapi.OwnerState) Note {
	shown := Note{
		Key: KeyNotice(n.ID), Kind: kindOf(n), Title: titleOf(n, s.Apps), Body: n.Text,
		Click: verbs.Action{Verb: verbs.Show, View: viewOf(kindOf(n))},
	}
	aboutSomebody(&shown, n, a.now())
	if n.Undo {
		shown.Buttons = []Button{{language.Say("Undo"), verbs.Action{Verb: verbs.Undo, Notice: n.ID, Text: n.Text}}}
		switch n.Kind {
		case agentapi.NoticeBrowser, agentapi.NoticePasskey:
			shown.Title, shown.Body = strings.TrimSuffix(n.Text, "."), language.Say("Not you? It ends with what was made for your account since, and you are signed out everywhere.")
			shown.Buttons[0].Text, shown.Click.View = language.Say("That was not me"), verbs.ViewPeople
		}
	}
	if i := slices.IndexFunc(s.Users, func(u agentapi.LocalUser) bool { return u.ID == n.User && u.Standing == agentapi.UserAsks }); i >= 0 {
		shown.Buttons = []Button{{language.Say("Allow"), verbs.AllowOf(s.Users[i])}, {language.Say("No"), verbs.DenyOf(s.Users[i])}}
	}
	return shown
}

// viewOf is where the window shows what a note is about.
func viewOf(k string) string {
	switch k {
	case agentapi.KindInvitation, agentapi.KindCapability:
		return verbs.ViewPeople
	case agentapi.KindClient:
		return verbs.ViewClients
	case agentapi.KindRequest: // of another user
		return verbs.ViewSettings
	}
	return verbs.ViewApps
}

// grants announces clients that somebody let in.
func (a *Announcer) grants(c *Changes, s agentapi.OwnerState) {
	var untold []agentapi.Grant
	newest, opens := a.Told.Grant, map[string]int{}
	for _, g := range s.Grants {
		opens[g.ID] = len(g.Apps)
		if g.Apps == nil {
			opens[g.ID] = math.MaxInt
		}
		before, known := a.opens[g.ID]
		more := known && opens[g.ID] > before // an app may have another label than before
		if !more && !g.CreatedAt.After(a.Told.Grant) {
			continue
		}
		if g.CreatedAt.After(newest) {
			newest = g.CreatedAt
		}
		if more || a.now().Sub(g.CreatedAt) < stale {
			untold = append(untold, g)
		}
	}
	a.Told.Grant, a.opens = newest, opens
	if len(untold) > 0 && !a.mayTell(agentapi.KindClient, len(untold)) {
		var names []string
		for _, g := range untold[:min(len(untold), maxNotes)] {
			names = append(names, language.Named(g.Called()))
		}
		c.Show = append(c.Show, thatShows(verbs.ViewClients, Note{
			Key: keyClients, Kind: agentapi.KindClient, Title: language.Count(len(untold), "%d connected app was let in", "%d connected apps were let in"),
			Body: listed(names, len(untold)),
		}))
		return
	}
	for _, g := range untold {
		c.Show = append(c.Show, a.grantNote(g, s))
		if g.LastCall.IsZero() {
			a.unused[g.ID] = true
		}
	}
}

// firstUses tells of a grant's first use on the note about it, where that still stands.
func (a *Announcer) firstUses(c *Changes, s agentapi.OwnerState) {
	unused := map[string]bool{}
	for _, g := range s.Grants {
		switch {
		case !a.unused[g.ID]:
		case g.LastCall.IsZero():
			unused[g.ID] = true
		case a.usedAtOnce(g):
			n := a.grantNote(g, s)
			n.InPlace = true
			c.Show = append(c.Show, n)
		}
	}
	a.unused = unused
}

// usedAtOnce is whether a client was just used, and soon after it was let in.
func (a *Announcer) usedAtOnce(g agentapi.Grant) bool {
	return !g.LastCall.IsZero() && g.LastCall.Sub(g.CreatedAt) < atOnce && a.now().Sub(g.LastCall) < atOnce
}

func (a *Announcer) grantNote(g agentapi.Grant, s agentapi.OwnerState) Note {
	name := language.Named(g.Called())
	title := language.Say("%s was let in", name)
	switch {
	case !a.usedAtOnce(g):
	case g.Apps == nil:
		title = language.Say("%s was let in, and has just opened an app", name)
	default:
		title = language.Say("%[1]s may open %[2]s, and has just done so", name, someApps(g.Apps))
	}
	yours := g.Email == s.Account.Email
	var body string
	switch {
	case g.Apps == nil && yours:
		body = language.Say("You allowed it to open your apps, as you. Connected apps lists it.")
	case g.Apps == nil:
		body = language.Say("%s allowed it to open, in their name, every app they may open. Connected apps lists it.", language.Named(g.Email))
	case yours:
		body = language.Say("You allowed it to open %s and nothing else, as you. Connected apps lists it.", someApps(g.Apps))
	default:
		body = language.Say("%[1]s allowed it to open, in their name, %[2]s and nothing else. Connected apps lists it.", language.Named(g.Email), someApps(g.Apps))
	}
	return thatShows(verbs.ViewClients, Note{
		Key: "grant-" + g.ID, Kind: agentapi.KindClient, Title: title, Body: body,
		Buttons: []Button{{language.Say("Revoke"), verbs.Action{Verb: verbs.RevokeGrant, Name: g.ID, Label: g.Called()}}},
	})
}

// someApps are the apps of a grant in words, two of them by their labels.
func someApps(labels []string) string {
	if len(labels) > 2 {
		return language.Count(len(labels), "%d app", "%d apps")
	}
	var named []string
	for _, label := range labels {
		named = append(named, language.Named(label))
	}
	return language.Spoken().And(named...)
}

// trouble announces what keeps visitors out once it has lasted, and takes that back
// when it is over.
func (a *Announcer) trouble(c *Changes, s agentapi.OwnerState) {
	if s.Trouble == "" {
		if a.troubleShown {
			c.Drop = append(c.Drop, KeyTrouble)
		}
		a.since, a.troubleShown = time.Time{}, false
		return
	}
	now := a.now()
	if a.since.IsZero() {
		a.since = now
	}
	switch left := lasting - now.Sub(a.since); {
	case a.troubleShown:
	case left > 0:
		c.lookAgain(left)
	default:
		a.troubleShown = true
		title := language.Say("Your apps may be out of reach")
		if s.AccessUntil != nil {
			title = language.Say("Porchlight cannot reach its server")
		}
		c.Show = append(c.Show, Note{Key: KeyTrouble, Kind: agentapi.KindConnection, Title: title, Body: s.Trouble,
			Click: verbs.Action{Verb: verbs.Show, View: verbs.ViewHealth}, Buttons: []Button{{language.Say("Health"), verbs.Action{Verb: verbs.Show, View: verbs.ViewHealth}}}})
	}
}

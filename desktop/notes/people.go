package notes

import (
	"slices"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
	"porchlight/desktop/verbs"
)

// knocksAtMost is the shortest time between two notes about many people who knock.
const knocksAtMost = time.Minute

// knocks asks the owner about people who would like to be let in: each by themselves
// while they are few, with one note while they are many.
func (a *Announcer) knocks(c *Changes, s agentapi.OwnerState, q func() []string) {
	var untold []agentapi.Knock
	waiting := map[string]bool{}
	for _, k := range s.Knocks {
		waiting[k.ID] = true
		if _, known := a.knocked[k.ID]; !known {
			untold = append(untold, k)
		}
	}
	for id, shown := range a.knocked {
		if waiting[id] {
			continue
		}
		if shown {
			c.Drop = append(c.Drop, keyKnock(id))
		}
		delete(a.knocked, id)
	}
	if len(s.Knocks) == 0 && a.manyKnocks {
		c.Drop = append(c.Drop, keyKnocks)
		a.manyKnocks = false
	}
	if len(untold) == 0 {
		return
	}
	if len(s.Knocks) <= maxNotes && a.mayTell(agentapi.KindKnock, len(untold)) {
		for _, k := range untold {
			a.knocked[k.ID] = true
			if !slices.Contains(q(), agentapi.KindKnock) {
				a.meet(k.AccountID)
			}
			c.Show = append(c.Show, knockNote(k))
		}
		return
	}
	if left := knocksAtMost - a.now().Sub(a.knocksAt); a.manyKnocks && left > 0 {
		c.lookAgain(left) // they stay untold until then
		return
	}
	for _, k := range untold {
		a.knocked[k.ID] = false
	}
	a.manyKnocks, a.knocksAt = true, a.now()
	newest := s.Knocks[len(s.Knocks)-1]
	body := language.Say("The newest: %s.", language.Named(newest.Email))
	if newest.App != "" {
		body = language.Say("The newest: %[1]s, for %[2]s.", language.Named(newest.Email), language.Named(newest.App))
	}
	c.Show = append(c.Show, thatShows(verbs.ViewApps, Note{
		Key: keyKnocks, Kind: agentapi.KindKnock, Body: body,
		Title: language.Count(len(s.Knocks), "%d person would like your apps", "%d people would like your apps"),
	}))
}

func knockNote(k agentapi.Knock) Note {
	n := Note{Key: keyKnock(k.ID), Kind: agentapi.KindKnock, Title: language.KnockTitle(k), Click: verbs.Action{Verb: verbs.Show, View: verbs.ViewApps}}
	n.Body = language.Say("Signed in with this address, waiting on the page. Today ends at midnight.")
	n.Buttons = []Button{
		{language.Say("Today"), verbs.AnswerOf(k, agentapi.KnockToday)},
		{language.Say("Always"), verbs.AnswerOf(k, agentapi.KnockAlways)},
		{language.Say("No"), verbs.AnswerOf(k, agentapi.KnockNo)},
	}
	if k.App == "" {
		n.Body = language.Say("Signed in with this address, waiting on the page.")
		n.Buttons = []Button{{language.Say("Invite…"), verbs.Action{Verb: verbs.Show, View: verbs.ViewInvite, Name: k.Email}}, n.Buttons[2]}
	}
	if !k.Known {
		n.Body += " " + language.Say("Not known to this computer so far.")
	}
	return n
}

// aboutSomebody fills in a note of a notice that is about one person, where it is.
func aboutSomebody(shown *Note, n agentapi.Notice, now time.Time) {
	switch {
	case n.Ended != nil:
		e := n.Ended
		who, apps := language.Named(e.Email), language.Named(language.Spoken().List(e.Apps, 3))
		shown.Title = language.Say("%[1]s ended for %[2]s", apps, who)
		shown.Body = language.Say("It was until %s.", language.LastDayOf(e.Until, now))
		if e.Closed > 0 {
			shown.Body += " " + language.Count(e.Closed, "%d connection closed.", "%d connections closed.")
		}
		if e.Doubtful {
			shown.Body = n.Text
		}
		shown.Click = verbs.Action{Verb: verbs.Show, View: verbs.ViewPeople}
		shown.Buttons = []Button{
			{language.Say("A week more"), verbs.Action{Verb: verbs.Prolong, Person: e.AccountID, Label: e.Email, App: strings.Join(e.Apps, "\n")}},
			{language.Say("Show"), shown.Click},
		}
	case n.Kind == agentapi.NoticeFirstVisit && n.Visitor != nil:
		v := n.Visitor
		shown.Title = language.Say("%[1]s opened %[2]s for the first time", language.Named(v.Email), language.Named(v.App))
		shown.Body = language.Say("At %s.", language.MomentOf(n.At, now))
		shown.Click = verbs.Action{Verb: verbs.Show, View: verbs.ViewActivity}
		shown.Buttons = []Button{
			{language.Say("Show"), shown.Click},
			{language.Say("Disconnect"), verbs.Action{Verb: verbs.Disconnect, Person: v.AccountID, Label: v.Email, App: v.App}},
		}
	}
}

// ownServer stands for the computer's own, whose port may change.
const ownServer = "own"

// account tells that the computer was connected to a server, or is not any more.
func (a *Announcer) account(c *Changes, s agentapi.OwnerState) {
	now := s.Account
	server := now.AuthURL
	if now.Local {
		server = ownServer
	}
	if now.Host == "" || server == a.Told.Server {
		return
	}
	first := a.Told.Server == ""
	a.Told.Server = server
	if first {
		return
	}
	n := Note{
		Key: keyAccount, Title: language.Say("This computer is connected"), Body: language.Say("Its address is %s.", now.Host),
		Click:   verbs.Action{Verb: verbs.Show, View: verbs.ViewApps},
		Buttons: []Button{{language.Say("Copy link"), verbs.Action{Verb: verbs.Copy, Text: now.URL}}, {language.Say("Invite…"), verbs.Action{Verb: verbs.Show, View: verbs.ViewInvite}}},
	}
	if now.Local {
		n.Title, n.Body = language.Say("This computer is disconnected"), language.Say("Your apps can be opened on this computer alone, under %s.", now.Host)
		n.Buttons = n.Buttons[:1]
	}
	if !slices.ContainsFunc(s.Apps, func(app agentapi.OwnerApp) bool { return app.Status == agentapi.StatusLive }) {
		n.Buttons = n.Buttons[:1]
	}
	c.Show = append(c.Show, n)
}

package desktop

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
func (a *announcer) knocks(c *changes, s agentapi.OwnerState) {
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
			c.drop = append(c.drop, keyKnock(id))
		}
		delete(a.knocked, id)
	}
	if len(s.Knocks) == 0 && a.manyKnocks {
		c.drop = append(c.drop, keyKnocks)
		a.manyKnocks = false
	}
	if len(untold) == 0 {
		return
	}
	if len(s.Knocks) <= maxNotes && a.mayTell(kindKnock, len(untold)) {
		for _, k := range untold {
			a.knocked[k.ID] = true
			c.show = append(c.show, knockNote(k))
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
	show := verbs.Action{Verb: verbs.Show, View: verbs.ViewApps}
	newest := s.Knocks[len(s.Knocks)-1]
	body := language.Say("The newest: %s.", language.Named(newest.Email))
	if newest.App != "" {
		body = language.Say("The newest: %[1]s, for %[2]s.", language.Named(newest.Email), language.Named(newest.App))
	}
	c.show = append(c.show, note{
		key: keyKnocks, kind: kindKnock, title: language.Count(len(s.Knocks), "%d person would like your apps", "%d people would like your apps"),
		body: body, buttons: []button{{language.Say("Show"), show}}, click: show,
	})
}

func knockNote(k agentapi.Knock) note {
	n := note{key: keyKnock(k.ID), kind: kindKnock, title: language.KnockTitle(k), click: verbs.Action{Verb: verbs.Show, View: verbs.ViewApps}}
	n.body = language.Say("Signed in with this address, waiting on the page. Today ends at midnight.")
	n.buttons = []button{
		{language.Say("Today"), verbs.AnswerOf(k, agentapi.KnockToday)},
		{language.Say("Always"), verbs.AnswerOf(k, agentapi.KnockAlways)},
		{language.Say("No"), verbs.AnswerOf(k, agentapi.KnockNo)},
	}
	if k.App == "" {
		n.body = language.Say("Signed in with this address, waiting on the page.")
		n.buttons = []button{{language.Say("Invite…"), verbs.Action{Verb: verbs.Show, View: verbs.ViewInvite, Name: k.Email}}, n.buttons[2]}
	}
	if !k.Known {
		n.body += " " + language.Say("Not known to this computer so far.")
	}
	return n
}

// aboutSomebody fills in a note of a notice that is about one person, where it is.
func aboutSomebody(shown *note, n agentapi.Notice, now time.Time) {
	switch {
	case n.Ended != nil:
		e := n.Ended
		who, apps := language.Named(e.Email), language.Named(language.Spoken().List(e.Apps, 3))
		shown.title = language.Say("%[1]s ended for %[2]s", apps, who)
		shown.body = language.Say("It was until %s.", language.LastDayOf(e.Until, now))
		if e.Closed > 0 {
			shown.body += " " + language.Count(e.Closed, "%d connection closed.", "%d connections closed.")
		}
		if e.Doubtful {
			shown.body = n.Text
		}
		shown.click = verbs.Action{Verb: verbs.Show, View: verbs.ViewPeople}
		shown.buttons = []button{
			{language.Say("A week more"), verbs.Action{Verb: verbs.Prolong, Person: e.AccountID, Label: e.Email, App: strings.Join(e.Apps, "\n")}},
			{language.Say("Show"), shown.click},
		}
	case n.Visitor != nil:
		v := n.Visitor
		shown.title = language.Say("%[1]s opened %[2]s for the first time", language.Named(v.Email), language.Named(v.App))
		shown.body = language.Say("At %s.", language.MomentOf(n.At, now))
		shown.click = verbs.Action{Verb: verbs.Show, View: verbs.ViewActivity}
		shown.buttons = []button{
			{language.Say("Show"), shown.click},
			{language.Say("Disconnect"), verbs.Action{Verb: verbs.Disconnect, Person: v.AccountID, Label: v.Email, App: v.App}},
		}
	}
}

// ownServer stands for the computer's own, whose port may change.
const ownServer = "own"

// account tells that the computer was connected to a server, or is not any more.
func (a *announcer) account(c *changes, s agentapi.OwnerState) {
	now := s.Account
	server := now.AuthURL
	if now.Local {
		server = ownServer
	}
	if now.Host == "" || server == a.told.server {
		return
	}
	first := a.told.server == ""
	a.told.server = server
	if first {
		return
	}
	n := note{
		key: keyAccount, title: language.Say("This computer is connected"), body: language.Say("Its address is %s.", now.Host),
		click:   verbs.Action{Verb: verbs.Show, View: verbs.ViewApps},
		buttons: []button{{language.Say("Copy link"), verbs.Action{Verb: verbs.Copy, Text: now.URL}}, {language.Say("Invite…"), verbs.Action{Verb: verbs.Show, View: verbs.ViewInvite}}},
	}
	if now.Local {
		n.title, n.body = language.Say("This computer is disconnected"), language.Say("Your apps can be opened on this computer alone, under %s.", now.Host)
		n.buttons = n.buttons[:1]
	}
	if !slices.ContainsFunc(s.Apps, func(app agentapi.OwnerApp) bool { return app.Status == agentapi.StatusLive }) {
		n.buttons = n.buttons[:1]
	}
	c.show = append(c.show, n)
}

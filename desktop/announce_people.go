package desktop

import (
	"slices"
	"strings"
	"time"

	"porchlight/agent/agentapi"
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
	show := action{verb: doShow, view: viewApps}
	newest := s.Knocks[len(s.Knocks)-1]
	body := say("The newest: %s.", isolate(shorten(newest.Email)))
	if newest.App != "" {
		body = say("The newest: %[1]s, for %[2]s.", isolate(shorten(newest.Email)), isolate(shorten(newest.App)))
	}
	c.show = append(c.show, note{
		key: keyKnocks, kind: kindKnock, title: sayCount(len(s.Knocks), "%d person would like your apps", "%d people would like your apps"),
		body: body, buttons: []button{{say("Show"), show}}, click: show,
	})
}

func knockNote(k agentapi.Knock) note {
	n := note{key: keyKnock(k.ID), kind: kindKnock, title: knockTitle(k), click: action{verb: doShow, view: viewApps}}
	n.body = say("Signed in with this address, waiting on the page. Today ends at midnight.")
	n.buttons = []button{
		{say("Today"), answerOf(k, agentapi.KnockToday)},
		{say("Always"), answerOf(k, agentapi.KnockAlways)},
		{say("No"), answerOf(k, agentapi.KnockNo)},
	}
	if k.App == "" {
		n.body = say("Signed in with this address, waiting on the page.")
		n.buttons = []button{{say("Invite…"), action{verb: doShow, view: viewInvite, name: k.Email}}, n.buttons[2]}
	}
	if !k.Known {
		n.body += " " + say("Not known to this computer so far.")
	}
	return n
}

// aboutSomebody fills in a note of a notice that is about one person, where it is.
func aboutSomebody(shown *note, n agentapi.Notice, now time.Time) {
	switch {
	case n.Ended != nil:
		e := n.Ended
		who, apps := isolate(shorten(e.Email)), isolate(shorten(language().List(e.Apps, 3)))
		shown.title = say("%[1]s ended for %[2]s", apps, who)
		shown.body = say("It was until %s.", lastDayOf(e.Until, now))
		if e.Closed > 0 {
			shown.body += " " + sayCount(e.Closed, "%d connection closed.", "%d connections closed.")
		}
		if e.Doubtful {
			shown.body = n.Text
		}
		shown.click = action{verb: doShow, view: viewPeople}
		shown.buttons = []button{
			{say("A week more"), action{verb: doProlong, person: e.AccountID, label: e.Email, app: strings.Join(e.Apps, "\n")}},
			{say("Show"), shown.click},
		}
	case n.Visitor != nil:
		v := n.Visitor
		shown.title = say("%[1]s opened %[2]s for the first time", isolate(shorten(v.Email)), isolate(shorten(v.App)))
		shown.body = say("At %s.", momentOf(n.At, now))
		shown.click = action{verb: doShow, view: viewActivity}
		shown.buttons = []button{
			{say("Show"), shown.click},
			{say("Disconnect"), action{verb: doDisconnect, person: v.AccountID, label: v.Email, app: v.App}},
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
		key: keyAccount, title: say("This computer is connected"), body: say("Its address is %s.", now.Host),
		click:   action{verb: doShow, view: viewApps},
		buttons: []button{{say("Copy link"), action{verb: doCopy, text: now.URL}}, {say("Invite…"), action{verb: doShow, view: viewInvite}}},
	}
	if now.Local {
		n.title, n.body = say("This computer is disconnected"), say("Your apps can be opened on this computer alone, under %s.", now.Host)
		n.buttons = n.buttons[:1]
	}
	if !slices.ContainsFunc(s.Apps, isLive) {
		n.buttons = n.buttons[:1]
	}
	c.show = append(c.show, n)
}

package desktop

import (
	"cmp"
	"fmt"
	"slices"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
	"porchlight/desktop/verbs"
)

// knockOf is the submenu of somebody who asks to be let in. Who asks for no app in
// particular is answered by an invitation.
func knockOf(k agentapi.Knock, p picture) line {
	about := []string{language.Say("Signed in with this address"), language.Say("Waiting on the page since %s", language.MomentOf(k.At, p.now))}
	if !k.Known {
		about = append(about, language.Say("Not known to this computer so far"))
	}
	answers := [3]line{
		{text: language.Say("Today, until midnight"), do: verbs.AnswerOf(k, agentapi.KnockToday)},
		{text: language.Say("Always"), do: verbs.AnswerOf(k, agentapi.KnockAlways)},
		{text: language.Say("No"), do: verbs.AnswerOf(k, agentapi.KnockNo)},
	}
	if k.App == "" {
		answers[0] = line{text: language.Say("Invite…"), do: verbs.Action{Verb: verbs.Show, View: verbs.ViewInvite, Name: k.Email}}
		answers[1] = line{}
	}
	return question(language.KnockTitle(k), about, answers, line{text: language.Say("Never ask again"), do: verbs.AnswerOf(k, agentapi.KnockNever)})
}

// here lists who has something open.
func (f *frame) here(p picture) {
	if len(p.visitors) == 0 {
		return
	}
	f.hereHead = language.Say("Here now")
	for _, v := range p.visitors[max(0, len(p.visitors)-maxHere):] { // those who came last
		f.visitors = append(f.visitors, visitorOf(p, v))
	}
	f.moreHere = more(len(p.visitors)-maxHere, verbs.ViewActivity)
}

// visitorOf is the submenu of somebody who has something open: what ends it for now,
// and what ends it for good. The owner can only be disconnected.
func visitorOf(p picture, v agentapi.Visitor) line {
	apps := language.Beside(language.Spoken().List(v.Apps, 3))
	var one, all line
	switch {
	case v.GrantID != "":
		name := language.Beside(v.ClientName)
		all = line{text: language.Say("Revoke %s", name), do: verbs.Action{Verb: verbs.RevokeGrant, Name: v.GrantID, Label: v.ClientName}}
	case v.AccountID != "" && v.Email != p.Account.Email:
		if len(v.Apps) == 1 {
			one = line{text: language.Say("Remove from %s", language.Beside(v.Apps[0])), do: verbs.TakeOf(v.AccountID, v.Email, v.Apps[0])}
		}
		all = line{text: language.Say("Remove from everything"), do: verbs.RemoveOf(v.AccountID, v.Email)}
	}
	return line{text: language.Say("%[1]s: %[2]s", whoIs(p, v), apps), sub: []line{
		{text: language.Count(v.Connections, "%d connection open", "%d connections open")},
		separator,
		{text: language.Say("Disconnect, they may come back"), do: verbs.DisconnectOf(v)},
		one,
		all,
	}}
}

// whoIs names a visitor: a person, or a connected app of theirs.
func whoIs(p picture, v agentapi.Visitor) string {
	who := language.Named(v.Email)
	if v.Email == p.Account.Email && v.Email != "" {
		who = language.Say("You")
	}
	if v.GrantID == "" {
		return who
	}
	return language.Say("%[1]s, through %[2]s", language.Beside(who), language.Beside(v.ClientName))
}

// mayOpen has a tick for each of the people who may open an app, and for those who
// might: a click gives or takes it. Those who may come first. What varies in number
// comes last, so the way to all of them stands above.
func mayOpen(p picture, a agentapi.OwnerApp) line {
	l := line{text: language.Say("Who may open it")}
	people := candidates(p.people, a.Label)
	may := 0
	for _, one := range people {
		if slices.Contains(one.Apps, a.Label) {
			may++
		}
	}
	if p.people == nil {
		may = a.OpenToCount
	}
	var all line
	head := line{text: language.Say("Only you so far")}
	switch {
	case len(people) > maxTicks:
		head.text = language.Say("%[1]d of %[2]d people may open it", may, len(people))
		all = line{text: language.Say("All %d people…", len(people)), do: verbs.Action{Verb: verbs.Show, View: verbs.ViewApps, Name: a.Name}}
	case may > 0:
		head.text = language.Say("Only you and those with a tick")
	}
	l.sub = []line{head, all}
	if !isLive(a) {
		return l
	}
	for _, one := range people[:min(len(people), maxTicks)] {
		l.sub = append(l.sub, tickOf(p, a, one))
	}
	return l
}

// candidates are the people who may open an app, and then those who might, each by
// address.
func candidates(people []agentapi.Person, label string) []agentapi.Person {
	out := slices.DeleteFunc(slices.Clone(people), func(one agentapi.Person) bool {
		return one.Role == agentapi.RoleOwner || one.Status == agentapi.PersonRemoved
	})
	slices.SortFunc(out, func(x, y agentapi.Person) int {
		xMay, yMay := slices.Contains(x.Apps, label), slices.Contains(y.Apps, label)
		switch {
		case xMay && !yMay:
			return -1
		case yMay && !xMay:
			return 1
		}
		return cmp.Compare(x.Email, y.Email)
	})
	return out
}

func tickOf(p picture, a agentapi.OwnerApp, one agentapi.Person) line {
	email := language.Named(one.Email)
	if !slices.Contains(one.Apps, a.Label) {
		return line{text: email, mark: markOff, do: verbs.GiveOf(one.AccountID, one.Email, a.Label)}
	}
	text := email
	if until, ends := one.Until[a.Label]; ends {
		text = language.Say("%[1]s, until %[2]s", text, language.LastDayOf(until, p.now))
	}
	switch {
	case slices.Contains(a.Here, one.Email):
		text = language.Say("%s, here now", text)
	case one.Status == agentapi.PersonPending:
		text = language.Say("%s, invited", text)
	}
	return line{text: text, mark: markOn, do: verbs.TakeOf(one.AccountID, one.Email, a.Label)}
}

// quitOf is what quits: at once where nobody is cut off by it, and else after saying
// who. An agent of another process goes on, whatever the menu bar does.
func quitOf(p picture) (quit [2]line) {
	quit[1].sub = []line{}
	own := p.Mode == "" || p.Mode == agentapi.ModeDesktop
	if !own || len(p.visitors) == 0 {
		quit[0] = line{text: language.Say("Quit Porchlight"), do: verbs.Action{Verb: verbs.Quit}}
		return quit
	}
	sub := make([]line, maxHere+2)
	sub[0].text = language.Say("%s cut off:", whoIsCut(p.visitors))
	for i, v := range p.visitors[:min(len(p.visitors), maxHere)] {
		sub[i+1].text = fmt.Sprintf("%s: %s", whoIs(p, v), language.Beside(language.Spoken().List(v.Apps, 3)))
	}
	sub[maxHere+1].text = language.Say("Your apps keep running.")
	quit[1] = line{text: language.Say("Quit Porchlight"), sub: append(sub, separator,
		line{text: language.Say("Yes, quit Porchlight"), do: verbs.Action{Verb: verbs.Quit}},
		line{text: language.Say("Go dark instead"), do: verbs.Action{Verb: verbs.Dark}},
	)}
	return quit
}

// whoIsCut counts who has something open: "2 people and 1 connected app are".
func whoIsCut(visitors []agentapi.Visitor) string {
	people, clients := 0, 0
	for _, v := range visitors {
		if v.GrantID == "" {
			people++
		} else {
			clients++
		}
	}
	var who []string
	if people > 0 {
		who = append(who, language.Count(people, "%d person", "%d people"))
	}
	if clients > 0 {
		who = append(who, language.Count(clients, "%d connected app", "%d connected apps"))
	}
	if people+clients == 1 {
		return language.Say("%s is", who[0])
	}
	return language.Say("%s are", language.Spoken().And(who...))
}

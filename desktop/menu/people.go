package menu

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
func knockOf(k agentapi.Knock, p Picture) Line {
	about := []string{language.Say("Signed in with this address"), language.Say("Waiting on the page since %s", language.MomentOf(k.At, p.Now))}
	if !k.Known {
		about = append(about, language.Say("Not known to this computer so far"))
	}
	answers := [4]Line{
		{Text: language.Say("Today, until midnight"), Do: verbs.AnswerOf(k, agentapi.KnockToday)},
		{Text: language.Say("Always"), Do: verbs.AnswerOf(k, agentapi.KnockAlways)},
		{Text: language.Say("No"), Do: verbs.AnswerOf(k, agentapi.KnockNo)},
	}
	if k.App == "" {
		answers[0] = Line{Text: language.Say("Invite…"), Do: verbs.Action{Verb: verbs.Show, View: verbs.ViewInvite, Name: k.Email}}
		answers[1] = Line{}
	}
	return question(language.KnockTitle(k), about, answers, Line{Text: language.Say("Never ask again"), Do: verbs.AnswerOf(k, agentapi.KnockNever)})
}

// visitorOf is the submenu of somebody who has something open: what ends it for now,
// and what ends it for good. What is in the owner's name removes nobody.
func visitorOf(p Picture, v agentapi.Visitor) Line {
	apps := language.Beside(language.Spoken().List(v.Apps, 3))
	var one, all Line
	switch {
	case v.GrantID != "":
		name := language.Beside(v.ClientName)
		all = Line{Text: language.Say("Revoke %s", name), Do: verbs.Action{Verb: verbs.RevokeGrant, Name: v.GrantID, Label: v.ClientName}}
	case v.AccountID != "" && !v.You:
		if len(v.Apps) == 1 {
			one = Line{Text: language.Say("Remove from %s", language.Beside(v.Apps[0])), Do: verbs.TakeOf(v.AccountID, v.Email, v.Apps[0])}
		}
		all = Line{Text: language.Say("Remove from everything"), Do: verbs.RemoveOf(v.AccountID, v.Email)}
	}
	return Line{Text: language.Say("%[1]s: %[2]s", whoIs(v), apps), Sub: []Line{
		{Text: language.Count(v.Connections, "%d connection open", "%d connections open")},
		separator,
		{Text: language.Say("Disconnect, they may come back"), Do: verbs.DisconnectOf(v)},
		one,
		all,
	}}
}

// whoIs names a visitor: a person, a connected app of theirs, or what the owner let in.
func whoIs(v agentapi.Visitor) string {
	switch {
	case v.You && v.ClientName == "":
		return language.Say("App password")
	case v.You:
		return language.Beside(v.ClientName)
	case v.GrantID == "":
		return language.Named(v.Email)
	}
	return language.Say("%[1]s, through %[2]s", language.Beside(v.Email), language.Beside(v.ClientName))
}

// mayOpen has a tick for each of the people who may open an app, and for those who
// might: a click gives or takes it. Those who may come first. What varies in number
// comes last, so the way to all of them stands above.
func mayOpen(p Picture, a agentapi.OwnerApp) Line {
	l := Line{Text: language.Say("Who may open it")}
	people := candidates(p.People, a.Label)
	may := 0
	for _, one := range people {
		if slices.Contains(one.Apps, a.Label) {
			may++
		}
	}
	if p.People == nil {
		may = a.OpenToCount
	}
	var all Line
	head := Line{Text: language.Say("Only you so far")}
	switch {
	case len(people) > maxTicks:
		head.Text = language.Say("%[1]d of %[2]d people may open it", may, len(people))
		all = Line{Text: language.Say("All %d people…", len(people)), Do: verbs.Action{Verb: verbs.Show, View: verbs.ViewApps, Name: a.Name}}
	case may > 0:
		head.Text = language.Say("Only you and those with a tick")
	}
	l.Sub = []Line{head, all}
	if !isLive(a) {
		return l
	}
	for _, g := range p.Groups[:min(len(p.Groups), maxTicks)] {
		l.Sub = append(l.Sub, groupTick(p, a, g))
	}
	for _, one := range people[:min(len(people), maxTicks)] {
		l.Sub = append(l.Sub, tickOf(p, a, one))
	}
	return l
}

// groupTick is a group, with a tick where it opens the app; a click gives or takes it.
func groupTick(p Picture, a agentapi.OwnerApp, g agentapi.Group) Line {
	line := Line{Text: language.Named(g.Name), Mark: markOff, Do: verbs.OfGroup(g, a.Label)}
	if line.Do.Verb == verbs.TakeGroup {
		line.Mark = MarkOn
	}
	if until, ends := g.Until[a.Label]; ends {
		line.Text = language.Say("%[1]s, until %[2]s", line.Text, language.LastDayOf(until, p.Now))
	}
	return line
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

func tickOf(p Picture, a agentapi.OwnerApp, one agentapi.Person) Line {
	email := language.Named(one.Email)
	if !slices.Contains(one.Apps, a.Label) {
		return Line{Text: email, Mark: markOff, Do: verbs.GiveOf(one.AccountID, one.Email, a.Label)}
	}
	text := email
	if until, ends := one.Until[a.Label]; ends {
		text = language.Say("%[1]s, until %[2]s", text, language.LastDayOf(until, p.Now))
	}
	switch {
	case slices.Contains(a.Here, one.Email):
		text = language.Say("%s, here now", text)
	case one.Status == agentapi.PersonPending:
		text = language.Say("%s, invited", text)
	}
	return Line{Text: text, Mark: MarkOn, Do: verbs.TakeOf(one.AccountID, one.Email, a.Label)}
}

// quitOf is what quits: at once where nobody is cut off by it, and else after saying
// who. An agent of another process goes on, whatever the menu bar does.
func quitOf(p Picture) (quit [2]Line) {
	quit[1].Sub = []Line{}
	own := p.Mode == "" || p.Mode == agentapi.ModeDesktop
	if !own || len(p.Visitors) == 0 {
		quit[0] = Line{Text: language.Say("Quit Porchlight"), Do: verbs.Action{Verb: verbs.Quit}}
		return quit
	}
	sub := make([]Line, maxHere+2)
	sub[0].Text = language.Say("%s cut off:", whoIsCut(p.Visitors))
	for i, v := range p.Visitors[:min(len(p.Visitors), maxHere)] {
		sub[i+1].Text = fmt.Sprintf("%s: %s", whoIs(v), language.Beside(language.Spoken().List(v.Apps, 3)))
	}
	sub[maxHere+1].Text = language.Say("Your apps keep running.")
	quit[1] = Line{Text: language.Say("Quit Porchlight"), Sub: append(sub, separator,
		Line{Text: language.Say("Yes, quit Porchlight"), Do: verbs.Action{Verb: verbs.Quit}},
		Line{Text: language.Say("Go dark instead"), Do: verbs.Action{Verb: verbs.Dark}},
	)}
	return quit
}

// whoIsCut counts who has something open: "2 people and 1 connected app are".
func whoIsCut(visitors []agentapi.Visitor) string {
	people, clients := 0, 0
	for _, v := range visitors {
		if v.GrantID == "" && !v.You {
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

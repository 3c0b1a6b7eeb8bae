package desktop

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"porchlight/agent/agentapi"
)

// half is how much of a line a name may take that stands beside another one.
const half = maxWords / 2

// knockOf is the submenu of somebody who asks to be let in. Who asks for no app in
// particular is answered by an invitation.
func knockOf(k agentapi.Knock, p picture) line {
	about := []string{say("Signed in with this address"), say("Waiting on the page since %s", momentOf(k.At, p.now))}
	if !k.Known {
		about = append(about, say("Not known to this computer so far"))
	}
	answers := [3]line{
		{text: say("Today, until midnight"), do: answerOf(k, agentapi.KnockToday)},
		{text: say("Always"), do: answerOf(k, agentapi.KnockAlways)},
		{text: say("No"), do: answerOf(k, agentapi.KnockNo)},
	}
	if k.App == "" {
		answers[0] = line{text: say("Invite…"), do: action{verb: doShow, view: viewInvite, name: k.Email}}
		answers[1] = line{}
	}
	return question(knockTitle(k), about, answers, line{text: say("Never ask again"), do: answerOf(k, agentapi.KnockNever)})
}

func knockTitle(k agentapi.Knock) string {
	email := isolate(shorten(k.Email))
	if k.App == "" {
		return say("%s would like to open something", email)
	}
	return say("%[1]s would like %[2]s", email, isolate(shortenTo(k.App, half)))
}

func answerOf(k agentapi.Knock, answer string) action {
	return action{verb: doAnswer, name: k.ID, person: k.AccountID, label: k.Email, app: k.App, text: answer}
}

// here lists who has something open.
func (f *frame) here(p picture) {
	if len(p.visitors) == 0 {
		return
	}
	f.hereHead = say("Here now")
	for _, v := range p.visitors[max(0, len(p.visitors)-maxHere):] { // those who came last
		f.visitors = append(f.visitors, visitorOf(p, v))
	}
	f.moreHere = more(len(p.visitors)-maxHere, viewActivity)
}

// visitorOf is the submenu of somebody who has something open: what ends it for now,
// and what ends it for good. The owner can only be disconnected.
func visitorOf(p picture, v agentapi.Visitor) line {
	apps := shortenTo(language().List(v.Apps, 3), half)
	var one, all line
	switch {
	case v.GrantID != "":
		name := isolate(shortenTo(v.ClientName, half))
		all = line{text: say("Revoke %s", name), do: action{verb: doRevokeGrant, name: v.GrantID, label: v.ClientName}}
	case v.AccountID != "" && v.Email != p.Account.Email:
		if len(v.Apps) == 1 {
			one = line{text: say("Remove from %s", isolate(shortenTo(v.Apps[0], half))), do: takeOf(v.AccountID, v.Email, v.Apps[0])}
		}
		all = line{text: say("Remove from everything"), do: removeOf(v.AccountID, v.Email)}
	}
	return line{text: say("%[1]s: %[2]s", whoIs(p, v), isolate(apps)), sub: []line{
		{text: sayCount(v.Connections, "%d connection open", "%d connections open")},
		separator,
		{text: say("Disconnect, they may come back"), do: disconnectOf(v)},
		one,
		all,
	}}
}

// whoIs names a visitor: a person, or a connected app of theirs.
func whoIs(p picture, v agentapi.Visitor) string {
	who := isolate(shorten(v.Email))
	if v.Email == p.Account.Email && v.Email != "" {
		who = say("You")
	}
	if v.GrantID == "" {
		return who
	}
	return say("%[1]s, through %[2]s", shortenTo(who, half), isolate(shortenTo(v.ClientName, half)))
}

func disconnectOf(v agentapi.Visitor) action {
	return action{verb: doDisconnect, person: v.AccountID, label: v.Email, grant: v.GrantID, app: strings.Join(v.Apps, "\n")}
}

func removeOf(account, email string) action {
	return action{verb: doRemove, person: account, label: email}
}

func takeOf(account, email, app string) action {
	return action{verb: doTake, person: account, label: email, app: app}
}

func giveOf(account, email, app string) action {
	return action{verb: doGive, person: account, label: email, app: app}
}

// mayOpen has a tick for each of the people who may open an app, and for those who
// might: a click gives or takes it. Those who may come first. What varies in number
// comes last, so the way to all of them stands above.
func mayOpen(p picture, a agentapi.OwnerApp) line {
	l := line{text: say("Who may open it")}
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
	head := line{text: say("Only you so far")}
	switch {
	case len(people) > maxTicks:
		head.text = say("%[1]d of %[2]d people may open it", may, len(people))
		all = line{text: say("All %d people…", len(people)), do: action{verb: doShow, view: viewApps, name: a.Name}}
	case may > 0:
		head.text = say("Only you and those with a tick")
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
	email := isolate(shorten(one.Email))
	if !slices.Contains(one.Apps, a.Label) {
		return line{text: email, mark: markOff, do: giveOf(one.AccountID, one.Email, a.Label)}
	}
	text := email
	if until, ends := one.Until[a.Label]; ends {
		text = say("%[1]s, until %[2]s", text, lastDayOf(until, p.now))
	}
	switch {
	case slices.Contains(a.Here, one.Email):
		text = say("%s, here now", text)
	case one.Status == agentapi.PersonPending:
		text = say("%s, invited", text)
	}
	return line{text: text, mark: markOn, do: takeOf(one.AccountID, one.Email, a.Label)}
}

// quitOf is what quits: at once where nobody is cut off by it, and else after saying
// who. An agent of another process goes on, whatever the menu bar does.
func quitOf(p picture) (quit [2]line) {
	quit[1].sub = []line{}
	own := p.Mode == "" || p.Mode == agentapi.ModeDesktop
	if !own || len(p.visitors) == 0 {
		quit[0] = line{text: say("Quit Porchlight"), do: action{verb: doQuit}}
		return quit
	}
	sub := make([]line, maxHere+2)
	sub[0].text = say("%s cut off:", whoIsCut(p.visitors))
	for i, v := range p.visitors[:min(len(p.visitors), maxHere)] {
		sub[i+1].text = fmt.Sprintf("%s: %s", whoIs(p, v), isolate(shortenTo(language().List(v.Apps, 3), half)))
	}
	sub[maxHere+1].text = say("Your apps keep running.")
	quit[1] = line{text: say("Quit Porchlight"), sub: append(sub, separator,
		line{text: say("Yes, quit Porchlight"), do: action{verb: doQuit}},
		line{text: say("Go dark instead"), do: action{verb: doDark}},
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
		who = append(who, sayCount(people, "%d person", "%d people"))
	}
	if clients > 0 {
		who = append(who, sayCount(clients, "%d connected app", "%d connected apps"))
	}
	if people+clients == 1 {
		return say("%s is", who[0])
	}
	return say("%s are", language().And(who...))
}

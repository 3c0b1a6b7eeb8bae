package desktop

import (
	"strconv"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
	"porchlight/desktop/verbs"
	"porchlight/internal/words"
)

// maxAbout is how many lines tell what is asked for.
const maxAbout = 12

// question is the submenu of whatever waits for the owner: what it is, up to three
// answers, and a last line. All have this shape, because they take each other's places.
func question(title string, about []string, answers [3]line, last line) line {
	sub := make([]line, maxAbout, maxAbout+6)
	for i := range min(len(about), maxAbout) {
		sub[i].text = about[i]
	}
	return line{text: title, sub: append(sub, separator, answers[0], answers[1], answers[2], separator, last)}
}

// requestOf is the submenu of one waiting request.
func requestOf(a agentapi.OwnerApp, rootHost string) line {
	about := []string{language.Shorten(language.HostOf(a, rootHost)), language.Shorten(language.UpperFirst(language.WhoListens(a)))}
	if changed := a.Changed(language.Named); !changed.IsZero() {
		about = append(about[:1], language.Wrap(language.Spoken().Tell(changed))...)
	}
	if by := language.AskedBy(a); by != "" {
		about = append(about, by)
	}
	if alike := a.Alike(language.Named); !alike.IsZero() {
		about = append(about, language.Wrap(language.Spoken().Tell(alike))...)
	}
	if a.Network {
		about = append(about, language.Wrap(a.NetworkDetail)...)
	}
	var alone line
	if others := a.Others(language.Named); !others.IsZero() {
		about = append(about, language.Wrap(language.Say("%s can open it again.", others))...)
		alone = line{text: language.Say("Approve for me alone"), do: verbs.AloneOf(a)}
	}
	return question(language.Wants(a), about, [3]line{
		{text: language.Say("Approve"), do: verbs.ApproveOf(a)},
		alone,
		{text: language.Say("Deny"), do: verbs.Action{Verb: verbs.Deny, Name: a.Name}},
	}, line{text: language.Say("Details…"), do: verbs.Action{Verb: verbs.Show, View: verbs.ViewApps, Name: a.Name}})
}

// userOf is the submenu of another user of this computer whose program wants in.
func userOf(u agentapi.LocalUser) line {
	name := language.Beside(u.Name)
	return question(language.Say("User %s wants in", name), []string{
		language.Say("A program of that user wants to see"),
		language.Say("and change who may open your apps."),
	}, [3]line{
		{text: language.Say("Allow"), do: verbs.AllowOf(u)},
		{text: language.Say("Don't allow"), do: verbs.DenyOf(u)},
	}, line{text: language.Say("Details…"), do: verbs.Action{Verb: verbs.Show, View: verbs.ViewSettings}})
}

// waits lists what waits for the owner: other users, apps and people. Strangers can
// knock, so that they never take the apps' places. Without the owner secret nothing
// can be answered.
func (f *frame) waits(p picture, requests []agentapi.OwnerApp, asking []agentapi.LocalUser) {
	all := len(requests) + len(asking) + len(p.Knocks)
	switch {
	case all == 0:
		return
	case p.secret != nil:
		f.waitingHead = language.Count(all, "%d waits for you: unlock to answer", "%d wait for you: unlock to answer")
		return
	}
	f.waitingHead = language.Say("Waiting for you")
	asking = asking[:min(len(asking), maxAsking)]
	room := maxRequests - len(asking)
	knocks := p.Knocks[:min(len(p.Knocks), max(room-len(requests), room/2))]
	requests = requests[:min(len(requests), room-len(knocks))]
	for _, a := range requests {
		f.waiting = append(f.waiting, requestOf(a, p.Account.Host))
	}
	for _, k := range knocks {
		f.waiting = append(f.waiting, knockOf(k, p))
	}
	for _, u := range asking {
		f.waiting = append(f.waiting, userOf(u))
	}
	f.moreWaiting = more(all-len(f.waiting), verbs.ViewApps)
}

// appOf is the submenu of one approved app. Nobody can open one that is paused,
// or any in the dark, the owner included: Open is greyed then and says why.
func appOf(p picture, a agentapi.OwnerApp) line {
	label := language.Named(a.Label)
	var open, pause, invite line
	if isLive(a) {
		open = openOf(p, a)
		pause = line{text: language.Say("Pause"), do: verbs.Action{Verb: verbs.Pause, Name: a.Name, Label: a.Label}}
		if p.secret == nil && p.AccessUntil == nil {
			invite = line{text: language.Say("Invite someone…"), do: verbs.Action{Verb: verbs.Show, View: verbs.ViewInvite, Name: a.Name}}
		}
	}
	if a.Paused || !isLive(a) { // by the owner, or by its own doing
		pause = line{text: language.Say("Resume"), do: verbs.Action{Verb: verbs.Resume, Name: a.Name, Label: a.Label}}
	}
	inNetwork := line{sub: []line{}}
	if a.Network {
		inNetwork.text = language.Say("Other computers can open it directly")
		for _, text := range language.Wrap(a.NetworkDetail) {
			inNetwork.sub = append(inNetwork.sub, line{text: text})
		}
	}
	return line{text: label + appStanding(a), sub: []line{
		open,
		{text: language.Say("Copy link"), do: verbs.CopyOf(a, language.HostOf(a, p.Account.Host))},
		separator,
		inNetwork,
		mayOpen(p, a),
		invite,
		separator,
		pause,
		confirmed(language.Say("Revoke"), language.Say("Yes, revoke %s", label), verbs.Action{Verb: verbs.Revoke, Name: a.Name, Label: a.Label},
			language.Say("The address goes away."), language.Say("Who may open it is forgotten.")),
	}}
}

func openOf(p picture, a agentapi.OwnerApp) line {
	switch {
	case p.DarkSince != nil:
		return line{text: language.Say("Open: not while dark")}
	case a.Paused:
		return line{text: language.Say("Open: not while paused")}
	}
	return line{text: language.Say("Open"), do: verbs.Action{Verb: verbs.Open, Name: a.Name}}
}

func appStanding(a agentapi.OwnerApp) string {
	switch {
	case a.Status != agentapi.StatusLive:
		return language.Say(": off")
	case a.Paused:
		return language.Say(": paused")
	case a.URL == "":
		return language.Say(": no address yet")
	case a.Ailment() != "":
		return ": " + language.Spoken().Tell(words.Plain(a.Ailment()))
	case len(a.Here) >= agentapi.MaxNamed:
		return language.Say(": %d or more here now", agentapi.MaxNamed)
	case len(a.Here) > 0:
		return language.Say(": %d here now", len(a.Here))
	}
	return ""
}

// shareOf leads to the window, where the owner sees the program before it is shared.
func shareOf(o offer) line {
	port := strconv.Itoa(o.port)
	return line{text: language.Say("Share what runs on port %s…", port), do: verbs.Action{Verb: verbs.Show, View: verbs.ViewAdd, Name: port}}
}

// clientsOf is the submenu of the connected apps; hidden while there is none.
func clientsOf(grants []agentapi.Grant) line {
	var l line
	if len(grants) > 0 {
		l.text = language.Say("Connected apps")
	}
	for _, g := range grants[:min(len(grants), maxClients)] {
		l.sub = append(l.sub, clientOf(g))
	}
	l.sub = padded(l.sub, maxClients, aClient())
	last := line{text: language.Say("Connected apps…"), do: verbs.Action{Verb: verbs.Show, View: verbs.ViewClients}}
	if rest := len(grants) - maxClients; rest > 0 {
		last = more(rest, verbs.ViewClients)
	}
	l.sub = append(l.sub, last)
	return l
}

func clientOf(g agentapi.Grant) line {
	name := language.Beside(g.ClientName)
	return confirmed(language.Say("%[1]s, as %[2]s", name, language.Beside(g.Email)), language.Say("Yes, revoke %s", name),
		verbs.Action{Verb: verbs.RevokeGrant, Name: g.ID, Label: g.ClientName},
		language.Say("It stops working within seconds."), language.Say("It can be allowed again later."))
}

// confirmed asks once, without a window: the consequence, then the yes.
func confirmed(title, yes string, do verbs.Action, consequence ...string) line {
	l := line{text: title}
	for _, c := range consequence {
		l.sub = append(l.sub, line{text: c})
	}
	l.sub = append(l.sub, separator, line{text: yes, do: do})
	return l
}

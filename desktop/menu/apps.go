package menu

import (
	"strconv"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
	"porchlight/desktop/verbs"
)

// requestOf is the submenu of one waiting request.
func requestOf(p Picture, a agentapi.OwnerApp) Line {
	about := []string{language.Shorten(language.HostOf(a, p.Account.Host)), language.Shorten(language.UpperFirst(language.WhoListens(a)))}
	if changed := a.Changed(language.Named); !changed.IsZero() {
		about = append(about[:1], language.Wrap(language.Spoken().Tell(changed))...)
	}
	if who := language.Spoken().TellAll(a.WhoAsks(language.Named)); who != "" {
		about = append(about, language.Wrap(who)...)
	}
	if alike := a.Alike(language.Named); !alike.IsZero() {
		about = append(about, language.Wrap(language.Spoken().Tell(alike))...)
	}
	if means := a.MeansTCP(); !means.IsZero() {
		about = append(about, language.Wrap(language.Spoken().Tell(means))...)
	}
	if a.Network {
		about = append(about, language.Wrap(a.NetworkDetail)...)
	}
	if a.Until != nil {
		about = append(about, language.Say("Approved until %s", language.EndOf(*a.Until, p.Now)))
	}
	var alone Line
	if others := a.Others(language.Named); !others.IsZero() {
		about = append(about, language.Wrap(language.Say("%s can open it again.", others))...)
		alone = Line{Text: language.Say("Approve for me alone"), Do: verbs.AloneOf(a)}
	}
	return question(language.Wants(a), about, [4]Line{
		{Text: language.Say("Approve"), Do: verbs.ApproveOf(a)},
		{Text: language.Say("Approve for today, until midnight"), Do: verbs.TodayOf(a)},
		alone,
		{Text: language.Say("Deny"), Do: verbs.Action{Verb: verbs.Deny, Name: a.Name}},
	}, Line{Text: language.Say("Details…"), Do: verbs.Action{Verb: verbs.Show, View: verbs.ViewApps, Name: a.Name}})
}

// userOf is the submenu of another user of this computer whose program wants in.
func userOf(u agentapi.LocalUser) Line {
	name := language.Beside(u.Name)
	return question(language.Say("User %s wants in", name), []string{
		language.Say("A program of that user wants to see"),
		language.Say("and change who may open your apps."),
	}, [4]Line{
		{Text: language.Say("Allow"), Do: verbs.AllowOf(u)},
		{Text: language.Say("Don't allow"), Do: verbs.DenyOf(u)},
	}, Line{Text: language.Say("Details…"), Do: verbs.Action{Verb: verbs.Show, View: verbs.ViewSettings}})
}

// appOf is the submenu of one approved app. Nobody can open one that is paused,
// or any in the dark, the owner included: Open is greyed then and says why.
func appOf(p Picture, a agentapi.OwnerApp) Line {
	label := language.Named(a.Label)
	var open, pause, invite, domain Line
	if isLive(a) {
		open = openOf(p, a)
		if !p.Account.Local && !a.TCP {
			domain = Line{Text: language.Say("Own domain…"), Do: verbs.Action{Verb: verbs.Show, View: verbs.ViewApps, Name: a.Name}}
		}
		pause = Line{Text: language.Say("Pause"), Do: verbs.Action{Verb: verbs.Pause, Name: a.Name, Label: a.Label}}
		if p.Secret == nil && p.AccessUntil == nil {
			invite = Line{Text: language.Say("Invite someone…"), Do: verbs.Action{Verb: verbs.Show, View: verbs.ViewInvite, Name: a.Name}}
		}
	}
	if a.Paused || !isLive(a) { // by the owner, or by its own doing
		pause = Line{Text: language.Say("Resume"), Do: verbs.Action{Verb: verbs.Resume, Name: a.Name, Label: a.Label}}
	}
	inNetwork := Line{Sub: []Line{}}
	if a.Network {
		inNetwork.Text = language.Say("Other computers can open it directly")
		for _, text := range language.Wrap(a.NetworkDetail) {
			inNetwork.Sub = append(inNetwork.Sub, Line{Text: text})
		}
	}
	var ends Line
	if a.Until != nil {
		ends.Text = language.Say("Approved until %s", language.EndOf(*a.Until, p.Now))
	}
	return Line{Text: label + appStanding(p, a), Sub: []Line{
		open,
		{Text: language.Say("Copy link"), Do: verbs.CopyOf(a, language.HostOf(a, p.Account.Host))},
		domain,
		separator,
		inNetwork,
		mayOpen(p, a),
		invite,
		separator,
		ends,
		pause,
		confirmed(language.Say("Revoke"), language.Say("Yes, revoke %s", label), verbs.Action{Verb: verbs.Revoke, Name: a.Name, Label: a.Label},
			language.Say("The address goes away."), language.Say("Who may open it is forgotten.")),
	}}
}

func openOf(p Picture, a agentapi.OwnerApp) Line {
	switch {
	case p.DarkSince != nil:
		return Line{Text: language.Say("Open: not while dark")}
	case a.Paused:
		return Line{Text: language.Say("Open: not while paused")}
	}
	return Line{Text: language.Say("Open"), Do: verbs.Action{Verb: verbs.Open, Name: a.Name}}
}

func appStanding(p Picture, a agentapi.OwnerApp) string {
	switch {
	case a.Status != agentapi.StatusLive:
		return language.Say(": off")
	case a.Paused:
		return language.Say(": paused")
	case a.URL == "":
		return language.Say(": no address yet")
	case a.Ailment != "":
		return ": " + a.Ailment
	case len(a.Here) >= agentapi.MaxNamed:
		return language.Say(": %d or more here now", agentapi.MaxNamed)
	case len(a.Here) > 0:
		return language.Say(": %d here now", len(a.Here))
	case a.Until != nil:
		return language.Say(": until %s", language.EndOf(*a.Until, p.Now))
	}
	return ""
}

// shareOf leads to the window, where the owner sees the program before it is shared.
func shareOf(o Offer) Line {
	port := strconv.Itoa(o.Port)
	text := language.Say("Share what runs on port %s…", port)
	if o.Program != "" {
		text = language.Say("Share %[1]s on port %[2]s…", language.Beside(o.Program), port)
	}
	return Line{Text: text, Do: verbs.Action{Verb: verbs.Show, View: verbs.ViewAdd, Name: port}}
}

// clientsOf is the submenu of the connected apps; hidden while there is none.
func clientsOf(grants []agentapi.Grant, now time.Time) Line {
	var l Line
	if len(grants) > 0 {
		l.Text = language.Say("Connected apps")
	}
	for _, g := range grants[:min(len(grants), maxClients)] {
		l.Sub = append(l.Sub, clientOf(g, now))
	}
	l.Sub = padded(l.Sub, maxClients)
	last := Line{Text: language.Say("Connected apps…"), Do: verbs.Action{Verb: verbs.Show, View: verbs.ViewClients}}
	if rest := len(grants) - maxClients; rest > 0 {
		last = more(rest, verbs.ViewClients)
	}
	l.Sub = append(l.Sub, last)
	return l
}

func clientOf(g agentapi.Grant, now time.Time) Line {
	name := language.Beside(g.Called())
	titled := name
	switch len(g.Apps) {
	case 0:
	case 1:
		titled = language.Say("%[1]s, for %[2]s alone", name, language.Beside(g.Apps[0]))
	default:
		titled = language.Say("%[1]s, for %[2]s", name, language.Count(len(g.Apps), "%d app", "%d apps"))
	}
	return confirmed(language.Say("%[1]s, as %[2]s", titled, language.Beside(g.Email)), language.Say("Yes, revoke %s", name),
		verbs.Action{Verb: verbs.RevokeGrant, Name: g.ID, Label: g.Called()},
		callsOf(g, now), language.Say("It stops working within seconds."), language.Say("It can be allowed again later."))
}

func callsOf(g agentapi.Grant, now time.Time) string {
	switch {
	case g.CallsToday > 0:
		return language.Count(g.CallsToday, "%[1]d call today, the last at %[2]s", "%[1]d calls today, the last at %[2]s", language.MomentOf(g.LastCall, now))
	case g.LastCall.IsZero():
		return language.Say("No call so far")
	}
	return language.Say("The last call: %s", language.MomentOf(g.LastCall, now))
}

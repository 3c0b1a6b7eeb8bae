package desktop

import (
	"fmt"

	"porchlight/agent/agentapi"
)

// requestOf is the submenu of one waiting request.
func requestOf(a agentapi.OwnerApp, rootHost string) line {
	about := []line{{text: shorten(hostOf(a, rootHost))}, {text: shorten(upperFirst(whoListens(a)))}}
	if changed := a.ListenerChange(named); changed != "" {
		about = about[:1]
		for _, part := range wrap(changed) {
			about = append(about, line{text: part})
		}
	}
	if by := askedBy(a); by != "" {
		about = append(about, line{text: by})
	}
	var alone line
	if again := a.AgainOpen(named); again != "" {
		for _, part := range wrap(again) {
			about = append(about, line{text: part})
		}
		alone = line{text: "Approve for me alone", do: aloneOf(a)}
	}
	return line{text: wants(a), sub: append(about,
		separator,
		line{text: "Approve", do: approveOf(a)},
		alone,
		line{text: "Deny", do: action{verb: doDeny, name: a.Name}},
		separator,
		line{text: "Details…", do: action{verb: doShow, view: viewApps}},
	)}
}

func approveOf(a agentapi.OwnerApp) action {
	return action{verb: doApprove, name: a.Name, label: a.Label, seen: seenOf(a)}
}

// aloneOf is approveOf that takes the app from everybody else.
func aloneOf(a agentapi.OwnerApp) action {
	return action{verb: doApproveAlone, name: a.Name, label: a.Label, seen: seenOf(a)}
}

// userOf is the submenu of another user of this computer whose program wants in.
// Its shape is that of a request, whose place it takes.
func userOf(u agentapi.LocalUser) line {
	name := isolate(shortenTo(u.Name, maxWords/2))
	return line{text: "User " + name + " wants in", sub: []line{
		{text: "A program of that user wants to see"},
		{text: "and change who may open your apps."},
		separator,
		{text: "Allow", do: allowUser(u)},
		{text: "Don't allow", do: denyUser(u)},
		separator,
		{text: "Details…", do: action{verb: doShow, view: viewSettings}},
	}}
}

func allowUser(u agentapi.LocalUser) action {
	return action{verb: doAllowUser, name: u.ID, label: u.Name}
}

func denyUser(u agentapi.LocalUser) action {
	return action{verb: doDenyUser, name: u.ID, label: u.Name}
}

// appOf is the submenu of one approved app. Nobody can open one that is paused,
// or any in the dark, the owner included: Open is greyed then and says why.
func appOf(a agentapi.OwnerApp, rootHost string, dark bool) line {
	label, live := isolate(shorten(a.Label)), a.Status == agentapi.StatusLive
	var open, pause line
	if live {
		pause = line{text: "Pause", do: action{verb: doPause, name: a.Name, label: a.Label}}
		open = line{text: "Open", do: action{verb: doOpen, name: a.Name}}
	}
	if live && a.Paused {
		open = line{text: "Open: not while paused"}
	}
	if a.Paused { // also one that is stopped: it comes back paused
		pause = line{text: "Resume", do: action{verb: doResume, name: a.Name, label: a.Label}}
	}
	if live && dark {
		open = line{text: "Open: not while dark"}
	}
	return line{text: label + appStanding(a), sub: []line{
		open,
		{text: "Copy address", do: action{verb: doCopy, name: a.Name, text: "https://" + hostOf(a, rootHost)}},
		separator,
		mayOpen(a),
		hereNow(a),
		separator,
		pause,
		confirmed("Revoke", "Yes, revoke "+label, action{verb: doRevoke, name: a.Name, label: a.Label},
			"The address goes away.", "Who may open it is forgotten."),
	}}
}

func appStanding(a agentapi.OwnerApp) string {
	switch {
	case a.Status != agentapi.StatusLive:
		return ": stopped"
	case a.Paused:
		return ": paused"
	case a.URL == "":
		return ": no address yet"
	case a.Ailment() != "":
		return ": " + a.Ailment()
	case len(a.Here) >= agentapi.MaxNamed:
		return fmt.Sprintf(": %d or more here now", agentapi.MaxNamed)
	case len(a.Here) > 0:
		return fmt.Sprintf(": %d here now", len(a.Here))
	}
	return ""
}

func mayOpen(a agentapi.OwnerApp) line {
	l := line{text: "Who may open it"}
	for _, email := range a.OpenTo[:min(len(a.OpenTo), maxPeople)] {
		l.sub = append(l.sub, line{text: isolate(shorten(email))})
	}
	if a.OpenToCount == 0 {
		l.sub = append(l.sub, line{text: "Only you"})
	}
	last := line{text: "People…", do: action{verb: doShow, view: viewPeople}}
	if rest := a.OpenToCount - len(l.sub); a.OpenToCount > 0 && rest > 0 {
		last = more(rest, viewPeople)
	}
	l.sub = append(l.sub, last)
	return l
}

func hereNow(a agentapi.OwnerApp) line {
	if len(a.Here) == 0 {
		return line{sub: []line{}}
	}
	l := line{text: "Here now"}
	for _, email := range a.Here[:min(len(a.Here), maxPeople)] {
		l.sub = append(l.sub, line{text: isolate(shorten(email))})
	}
	last := line{text: "Activity…", do: action{verb: doShow, view: viewActivity}}
	if len(a.Here) > maxPeople {
		last.text = "and more…" // how many more, the snapshot does not say
	}
	l.sub = append(l.sub, last)
	return l
}

// clientsOf is the submenu of the connected apps; hidden while there is none.
func clientsOf(grants []agentapi.Grant) line {
	var l line
	if len(grants) > 0 {
		l.text = "Connected apps"
	}
	for _, g := range grants[:min(len(grants), maxClients)] {
		l.sub = append(l.sub, clientOf(g))
	}
	l.sub = padded(l.sub, maxClients, aClient)
	last := line{text: "Connected apps…", do: action{verb: doShow, view: viewClients}}
	if rest := len(grants) - maxClients; rest > 0 {
		last = more(rest, viewClients)
	}
	l.sub = append(l.sub, last)
	return l
}

func clientOf(g agentapi.Grant) line {
	name := isolate(shortenTo(g.ClientName, maxWords/2))
	return confirmed(name+", as "+isolate(shortenTo(g.Email, maxWords/2)), "Yes, revoke "+name,
		action{verb: doRevokeGrant, name: g.ID, label: g.ClientName},
		"It stops working within seconds.", "It can be allowed again later.")
}

// confirmed asks once, without a window: the consequence, then the yes.
func confirmed(title, yes string, do action, consequence ...string) line {
	l := line{text: title}
	for _, c := range consequence {
		l.sub = append(l.sub, line{text: c})
	}
	l.sub = append(l.sub, separator, line{text: yes, do: do})
	return l
}

// more is the line after those listed, or none.
func more(n int, view string) line {
	if n <= 0 {
		return line{}
	}
	return line{text: fmt.Sprintf("and %d more…", n), do: action{verb: doShow, view: view}}
}

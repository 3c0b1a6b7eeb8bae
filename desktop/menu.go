package desktop

import (
	"cmp"
	"slices"
	"strings"

	"porchlight/agent/agentapi"
)

// How many of a kind the menu lists before "and N more…".
const (
	maxRequests = 5
	maxAsking   = 2 // other users of the computer, in the places of requests
	maxApps     = 15
	maxClients  = 10
	maxPeople   = 8 // of those who may open an app, and of those who are there

	// maxTrouble is how many lines what is wrong may fill, below the status.
	maxTrouble = 3
)

// The five drawings of the tray icon. Trouble outranks waiting, then connected,
// ready, off.
const (
	iconOff       = "off"
	iconReady     = "ready"
	iconConnected = "connected"
	iconWaiting   = "waiting"
	iconTrouble   = "trouble"
)

// Views of the window, by the page's own names.
const (
	viewApps     = "apps"
	viewPeople   = "people"
	viewClients  = "clients"
	viewActivity = "activity"
	viewSettings = "settings"
)

// menu is everything the tray shows, drawn from one snapshot. The tray can
// append lines and hide them, but not move a separator. So a place in a menu is
// a separator always or never: everything that may be absent has a place, with
// no text while it is, and only what comes last in its menu may vary in number.
type menu struct {
	icon  string
	lines []line
}

// line is one line of the menu: hidden where it has no text, greyed where it has
// neither an action nor lines below it.
type line struct {
	text string
	do   action
	mark mark
	sub  []line // not nil, if empty, where lines may come to be below it
	rule bool   // a separator
}

// mark is the tick of a line that is on or off.
type mark int

const (
	noMark mark = iota
	markOff
	markOn
)

// status is the first line, which is also what the icon's tip says.
func (m menu) status() string { return m.lines[0].text }

var (
	separator      = line{rule: true}
	openPorchlight = line{text: "Open Porchlight", do: action{verb: doShow}}
	quitPorchlight = line{text: "Quit Porchlight", do: action{verb: doQuit}}
)

// menuWithout draws the menu of a snapshot and says why the owner secret is not
// there, nil where it is; atLogin says whether Porchlight starts when the owner
// logs in.
func menuWithout(s agentapi.OwnerState, secret error, atLogin bool) menu {
	requests, apps := sorted(s.Apps)
	m := frame{
		address:     line{text: shorten(s.Account.Host), do: action{verb: doCopy, text: s.Account.URL}},
		waitingHead: "Nothing is waiting for you",
		appsHead:    "No apps yet",
		people:      line{text: "People…", do: action{verb: doShow, view: viewPeople}},
		clients:     clientsOf(s.Grants),
		dark:        line{text: "Go dark", do: action{verb: doDark}},
	}
	asking := slices.DeleteFunc(slices.Clone(s.Users), func(u agentapi.LocalUser) bool { return u.Standing != agentapi.UserAsks })
	m.icon, m.status, m.trouble = standing(s, len(requests)+len(asking))
	if s.DarkSince != nil {
		m.dark = line{text: "Light up again", do: action{verb: doLight}}
	}
	if len(requests)+len(asking) > 0 {
		m.waitingHead = "Waiting for you"
	}
	asking = asking[:min(len(asking), maxAsking)]
	room := maxRequests - len(asking)
	for _, a := range requests[:min(len(requests), room)] {
		m.waiting = append(m.waiting, requestOf(a, s.Account.Host))
	}
	for _, u := range asking {
		m.waiting = append(m.waiting, userOf(u))
	}
	m.moreWaiting = more(len(requests)-room, viewApps)
	if len(apps) > 0 {
		m.appsHead = "Apps"
	}
	for _, a := range apps[:min(len(apps), maxApps)] {
		m.apps = append(m.apps, appOf(a, s.Account.Host, s.DarkSince != nil))
	}
	m.moreApps = more(len(apps)-maxApps, viewApps)
	if secret != nil {
		m.withoutSecret(secret)
	}
	return m.draw(atLogin)
}

// emptyMenu is the menu while there is no snapshot: starting, locked, stopping.
func emptyMenu(icon, status string, atLogin bool) menu {
	return emptyFrame(icon, status).draw(atLogin)
}

func emptyFrame(icon, status string) frame {
	return frame{
		icon: icon, status: shorten(status), waitingHead: "Nothing is waiting for you", appsHead: "No apps yet",
		people: line{text: "People…", do: action{verb: doShow, view: viewPeople}}, clients: clientsOf(nil), dark: line{text: "Go dark"},
	}
}

// frame is what a menu is put together from; draw gives every part its place.
type frame struct {
	icon, status          string
	trouble               []string
	secret, address       line // secret: what can be done about a missing owner secret
	waitingHead, appsHead string
	waiting, apps         []line
	moreWaiting, moreApps line
	people, clients, dark line
}

func (f frame) draw(atLogin bool) menu {
	login := line{text: "Start at login", do: action{verb: doLogin, on: !atLogin}, mark: markOff}
	if atLogin {
		login.mark = markOn
	}
	lines := []line{{text: f.status}}
	for i := range maxTrouble {
		var l line
		if i < len(f.trouble) {
			l.text = f.trouble[i]
		}
		lines = append(lines, l)
	}
	lines = append(lines, f.secret, f.address, separator, line{text: f.waitingHead})
	lines = append(lines, padded(f.waiting, maxRequests, aRequest)...)
	lines = append(lines, f.moreWaiting, separator, line{text: f.appsHead})
	lines = append(lines, padded(f.apps, maxApps, anApp)...)
	lines = append(lines, f.moreApps, separator, f.people, f.clients, separator, f.dark, openPorchlight, login, separator, quitPorchlight)
	return menu{icon: f.icon, lines: lines}
}

// spare is how many places more than are needed are made ready, with all that
// will be below them: the panel has then long drawn the place where something
// new appears (see level).
const spare = 2

var (
	aRequest = blank(requestOf(agentapi.OwnerApp{}, ""))
	anApp    = blank(appOf(agentapi.OwnerApp{OpenTo: []string{""}, Here: []string{""}}, "", false))
	aClient  = blank(clientOf(agentapi.Grant{}))
)

// padded keeps the places of what is not there, some of them with all that will
// be below it.
func padded(lines []line, places int, shape line) []line {
	lines = slices.Clip(lines)
	for ready := 0; len(lines) < places; ready++ {
		if ready == spare {
			shape = line{sub: []line{}}
		}
		lines = append(lines, shape)
	}
	return lines
}

// blank is the shape of a line: its places, all hidden.
func blank(l line) line {
	shape := line{rule: l.rule}
	if l.sub != nil {
		shape.sub = []line{}
	}
	for _, below := range l.sub {
		shape.sub = append(shape.sub, blank(below))
	}
	return shape
}

// sorted splits the apps. The request that waits longest comes first, so that a
// new one never moves what the owner is about to click.
func sorted(all []agentapi.OwnerApp) (requests, apps []agentapi.OwnerApp) {
	for _, a := range all {
		if a.Status == agentapi.StatusPending {
			requests = append(requests, a)
		} else {
			apps = append(apps, a)
		}
	}
	slices.SortStableFunc(requests, func(a, b agentapi.OwnerApp) int { return a.RequestedAt.Compare(b.RequestedAt) })
	slices.SortStableFunc(apps, func(a, b agentapi.OwnerApp) int {
		return cmp.Compare(strings.ToLower(a.Label), strings.ToLower(b.Label))
	})
	return requests, apps
}

// lit says whether visitors can use an app: the window lights the same ones.
func lit(a agentapi.OwnerApp) bool {
	return a.Status == agentapi.StatusLive && !a.Paused && a.Ailment() == ""
}

// standing says how things are: the icon, the status line, and what is wrong.
func standing(s agentapi.OwnerState, requests int) (icon, status string, trouble []string) {
	on := slices.ContainsFunc(s.Apps, func(a agentapi.OwnerApp) bool { return a.Status == agentapi.StatusLive && !a.Paused })
	someLit := slices.ContainsFunc(s.Apps, lit)
	icon, status = iconOff, "No app is on"
	switch {
	case s.DarkSince != nil:
		status = "Dark"
	case s.AccessUntil != nil, s.Account.Host != "" && !s.Account.Connected && s.Trouble == "":
		status = "Reconnecting…"
		if someLit {
			icon = iconReady
		}
	case someLit && s.Here > 0:
		icon, status = iconConnected, "On. "+count(s.Here, "person", "people")+" here now"
	case someLit:
		icon, status = iconReady, "On. Nobody here now"
	case on:
		status = "No app answers"
	}
	status += elsewhereWords(s.Mode)
	if requests > 0 {
		icon = iconWaiting
	}
	if s.Trouble == "" {
		return icon, status, nil
	}
	if trouble = wrap(s.Trouble); s.DarkSince == nil && s.AccessUntil == nil {
		status, trouble = trouble[0], trouble[1:]
	}
	return iconTrouble, status, trouble[:min(len(trouble), maxTrouble)]
}

// elsewhereWords says that the agent is not this process's: quitting the menu
// bar then stops nothing.
func elsewhereWords(mode agentapi.Mode) string {
	switch mode {
	case agentapi.ModeHeadless:
		return ", in another process"
	case agentapi.ModeBundled:
		return ", brought along by an app"
	}
	return ""
}

package desktop

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
	"porchlight/desktop/verbs"
)

// How many of a kind the menu lists before "and N more…".
const (
	maxRequests = 5 // of apps, of people who knock, and of other users
	maxAsking   = 2 // other users of the computer, in the places of requests
	maxHere     = 5
	maxApps     = 15
	maxTicks    = 15 // of people who may or might open an app
	maxClients  = 10

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

// menu is everything the tray shows, drawn from one picture. The tray can
// append lines and hide them, but not move a separator. So a place in a menu is
// a separator always or never: everything that may be absent has a place, with
// no text while it is, and only what comes last in its menu may vary in number.
// For the same reason what is often absent stands between no separators of its own.
type menu struct {
	icon  string
	tip   string // what the icon says when it is pointed at
	lines []line
}

// line is one line of the menu: hidden where it has no text, greyed where it has
// neither an action nor lines below it.
type line struct {
	text string
	do   verbs.Action
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

// marked is the mark of what is on, or off.
func marked(on bool) mark {
	if on {
		return markOn
	}
	return markOff
}

// status is the first line.
func (m menu) status() string { return m.lines[0].text }

var separator = line{rule: true}

// picture is all that a menu is drawn from.
type picture struct {
	agentapi.OwnerState
	// people of the computer, the owner and removed ones too; nil while not known.
	people   []agentapi.Person
	visitors []agentapi.Visitor // who has something open
	share    offer              // what could be shared; its port is 0 for nothing
	secret   error              // why the owner secret is not there, nil where it is
	atLogin  bool               // whether Porchlight starts when the owner logs in
	now      time.Time
}

// offer is a program of the owner's that listens, and that nobody has an address for.
type offer struct {
	port    int
	program string
	since   time.Time
}

// drawn is the menu of a picture.
func drawn(p picture) menu {
	requests, apps := sorted(p.Apps)
	asking := slices.DeleteFunc(slices.Clone(p.Users), func(u agentapi.LocalUser) bool { return u.Standing != agentapi.UserAsks })
	f := frame{
		address: line{text: language.Shorten(p.Account.Host), do: verbs.Action{Verb: verbs.Copy, Text: p.Account.URL}},
		people:  line{text: language.Say("People…"), do: verbs.Action{Verb: verbs.Show, View: verbs.ViewPeople}},
		clients: clientsOf(p.Grants),
		add:     line{text: language.Say("Add an app…"), do: verbs.Action{Verb: verbs.Show, View: verbs.ViewAdd}},
		quit:    quitOf(p),
	}
	waiting := len(requests) + len(asking) + len(p.Knocks)
	f.icon, f.status, f.trouble = standing(p, waiting)
	f.waits(p, requests, asking)
	f.here(p)
	if len(apps) > 0 {
		f.appsHead = language.Say("Apps")
	}
	for _, a := range apps[:min(len(apps), maxApps)] {
		f.apps = append(f.apps, appOf(p, a))
	}
	f.moreApps = more(len(apps)-maxApps, verbs.ViewApps)
	f.lights(p)
	if on := slices.ContainsFunc(apps, isLive); on && p.secret == nil && p.AccessUntil == nil {
		f.invite = line{text: language.Say("Invite someone…"), do: verbs.Action{Verb: verbs.Show, View: verbs.ViewInvite}}
	}
	if p.share.port != 0 && p.secret == nil {
		f.share = shareOf(p.share)
	}
	if p.secret != nil {
		f.withoutSecret(p.secret)
	}
	m := f.draw(p.atLogin)
	if m.tip = m.status(); waiting > 0 {
		m.tip = language.Say("%[1]s, %[2]d waiting", m.tip, waiting)
	}
	return m
}

func isLive(a agentapi.OwnerApp) bool { return a.Status == agentapi.StatusLive }

// emptyMenu is the menu while there is no snapshot: starting, stopping.
func emptyMenu(icon, status string, atLogin bool) menu {
	m := frame{
		icon: icon, status: language.Shorten(status),
		people: line{text: language.Say("People…"), do: verbs.Action{Verb: verbs.Show, View: verbs.ViewPeople}}, clients: clientsOf(nil),
		quit: quitOf(picture{}),
	}.draw(atLogin)
	m.tip = m.status()
	return m
}

// frame is what a menu is put together from; draw gives every part its place.
type frame struct {
	icon, status            string
	trouble                 []string
	secret, light, health   line // what can be done about how things are
	address                 line
	waitingHead, hereHead   string
	waiting, visitors       []line
	moreWaiting, moreHere   line
	appsHead                string
	apps                    []line
	moreApps, share, add    line
	invite, people, clients line
	dark                    line
	quit                    [2]line // at once, and one that asks: one of them is there
}

func (f frame) draw(atLogin bool) menu {
	lines := []line{{text: f.status}}
	for i := range maxTrouble {
		var l line
		if i < len(f.trouble) {
			l.text = f.trouble[i]
		}
		lines = append(lines, l)
	}
	lines = append(lines, f.secret, f.light, f.health, f.address, line{text: f.waitingHead})
	lines = append(lines, padded(f.waiting, maxRequests, aRequest())...)
	lines = append(lines, f.moreWaiting, line{text: f.hereHead})
	lines = append(lines, padded(f.visitors, maxHere, aVisitor())...)
	lines = append(lines, f.moreHere, separator, line{text: f.appsHead})
	lines = append(lines, padded(f.apps, maxApps, anApp())...)
	lines = append(lines, f.moreApps, f.share, f.add, separator, f.invite, f.people, f.clients, separator, f.dark,
		line{text: language.Say("Open Porchlight"), do: verbs.Action{Verb: verbs.Show}},
		line{text: language.Say("Start at login"), do: verbs.Action{Verb: verbs.Login, On: !atLogin}, mark: marked(atLogin)},
		separator, f.quit[0], f.quit[1])
	return menu{icon: f.icon, lines: lines}
}

// lights offers to go dark where something is on, and to light up again in the dark.
func (f *frame) lights(p picture) {
	switch {
	case p.DarkSince != nil:
		f.light = line{text: language.Say("Light up again"), do: verbs.Action{Verb: verbs.Light}}
	case slices.ContainsFunc(p.Apps, isLive):
		f.dark = line{text: language.Say("Go dark"), do: verbs.Action{Verb: verbs.Dark}}
	}
	if p.Trouble != "" {
		f.health = line{text: language.Say("Health…"), do: verbs.Action{Verb: verbs.Show, View: verbs.ViewHealth}}
	}
}

// spare is how many places more than are needed are made ready, with all that
// will be below them: the panel has then long drawn the place where something
// new appears (see level).
const spare = 2

// The shapes of what may come. Nothing is said before the language is chosen.
var (
	aRequest = sync.OnceValue(func() line { return blank(requestOf(agentapi.OwnerApp{}, "")) })
	aVisitor = sync.OnceValue(func() line { return blank(visitorOf(picture{}, agentapi.Visitor{})) })
	anApp    = sync.OnceValue(func() line { return blank(appOf(picture{}, agentapi.OwnerApp{})) })
	aClient  = sync.OnceValue(func() line { return blank(clientOf(agentapi.Grant{})) })
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

// more is the line after those listed, or none.
func more(n int, view string) line {
	if n <= 0 {
		return line{}
	}
	return line{text: language.Say("and %d more…", n), do: verbs.Action{Verb: verbs.Show, View: view}}
}

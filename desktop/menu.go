package desktop

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"porchlight/agent/agentapi"
)

const (
	// maxRequests and maxApps are how many the menu lists before "and N more".
	maxRequests = 5
	maxApps     = 15

	// maxWords is the longest text of a menu line, in characters.
	maxWords = 48
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

// verb is what a line of the menu, or a button of a notification, does.
type verb string

const (
	doNothing verb = ""
	doCopy    verb = "copy"
	doApprove verb = "approve"
	doDeny    verb = "deny"
	doOpen    verb = "open"
	doStop    verb = "stop"
	doRevoke  verb = "revoke"
	doShow    verb = "show" // the window
	doQuit    verb = "quit"
)

// action is a verb with its object.
type action struct {
	verb verb
	name string // the app's, where it is about one
	// seen is what the owner was looking at when approving: a request that
	// changed since is not what they meant.
	seen seen
	text string // what doCopy copies
}

// seen is the part of a request an approval depends on: what the agent compares,
// and who listened on the port.
type seen struct {
	agentapi.Seen
	program string
	user    string
}

func seenOf(a agentapi.OwnerApp) seen {
	return seen{
		Seen:    agentapi.Seen{Label: a.Label, LocalPort: a.LocalPort},
		program: a.Listener.Program,
		user:    a.Listener.User,
	}
}

// line is one line of the menu: greyed where it has no action.
type line struct {
	text string
	do   action
}

// menu is everything the tray shows, drawn from one snapshot.
type menu struct {
	icon    string
	status  line
	address line // empty text: none yet
	// waiting and apps are at most maxRequests and maxApps long; more tells of
	// the rest, or is empty.
	waitingHead string
	waiting     []requestMenu
	moreWaiting line
	appsHead    string
	apps        []appMenu
	moreApps    line
}

// requestMenu is the submenu of one waiting request.
type requestMenu struct {
	title         string
	address       line
	program       line
	approve, deny line
}

// appMenu is the submenu of one approved app. A line with no text is left out.
type appMenu struct {
	title       string
	open, copy  line
	stop        line
	revoke      string
	consequence [2]line
	confirm     line
}

// menuOf draws the menu of a snapshot.
func menuOf(s agentapi.OwnerState) menu {
	m := menu{appsHead: "Apps"}
	var requests, apps []agentapi.OwnerApp
	live, connections := 0, 0
	for _, a := range s.Apps {
		switch a.Status {
		case agentapi.StatusPending:
			requests = append(requests, a)
		case agentapi.StatusLive:
			live++
			connections += a.Connections
			apps = append(apps, a)
		default:
			apps = append(apps, a)
		}
	}
	// The one that waits longest comes first, so that a new request never moves
	// what the owner is about to click.
	slices.SortStableFunc(requests, func(a, b agentapi.OwnerApp) int { return a.RequestedAt.Compare(b.RequestedAt) })
	slices.SortStableFunc(apps, func(a, b agentapi.OwnerApp) int {
		return cmp.Compare(strings.ToLower(a.Label), strings.ToLower(b.Label))
	})

	m.icon, m.status.text = standing(s, len(requests), live, connections)
	m.status.text += elsewhereWords(s)
	if s.Account.Host != "" {
		m.address = line{shorten(s.Account.Host), action{verb: doCopy, text: s.Account.URL}}
	}
	m.waitingHead = "Nothing is waiting for you"
	if len(requests) > 0 {
		m.waitingHead = "Waiting for you"
	}
	for i, a := range requests {
		if i == maxRequests {
			m.moreWaiting = more(len(requests) - i)
			break
		}
		m.waiting = append(m.waiting, requestOf(a, s.Account.Host))
	}
	if len(apps) == 0 {
		m.appsHead = "No apps yet"
	}
	for i, a := range apps {
		if i == maxApps {
			m.moreApps = more(len(apps) - i)
			break
		}
		m.apps = append(m.apps, appOf(a, s.Account.Host))
	}
	return m
}

// plainMenu is the menu while there is no snapshot: starting, locked, stopping.
func plainMenu(icon, status string) menu {
	return menu{icon: icon, status: line{text: shorten(status)}, waitingHead: "Nothing is waiting for you", appsHead: "No apps yet"}
}

func standing(s agentapi.OwnerState, requests, live, connections int) (icon, status string) {
	switch {
	case s.Trouble != "":
		return iconTrouble, shorten(s.Trouble)
	case live == 0:
		icon, status = iconOff, "No app is on"
	case connections > 0:
		icon, status = iconConnected, "On. "+count(connections, "connection", "connections")+" now"
	default:
		icon, status = iconReady, "On. Nobody here now"
	}
	if requests > 0 {
		icon = iconWaiting
	}
	return icon, status
}

// elsewhereWords says that the agent is not this process's: quitting the menu
// bar then stops nothing.
func elsewhereWords(s agentapi.OwnerState) string {
	switch {
	case s.Trouble != "":
		return "" // which fills the line
	case s.Mode == agentapi.ModeHeadless:
		return ", in another process"
	case s.Mode == agentapi.ModeBundled:
		return ", brought along by an app"
	}
	return ""
}

func requestOf(a agentapi.OwnerApp, rootHost string) requestMenu {
	return requestMenu{
		title:   wants(a),
		address: line{text: shorten(hostOf(a, rootHost))},
		program: line{text: shorten(upperFirst(whoListens(a)))},
		approve: line{"Approve", action{verb: doApprove, name: a.Name, seen: seenOf(a)}},
		deny:    line{"Deny", action{verb: doDeny, name: a.Name}},
	}
}

func appOf(a agentapi.OwnerApp, rootHost string) appMenu {
	label := isolate(shorten(a.Label))
	m := appMenu{
		title:  label,
		copy:   line{"Copy address", action{verb: doCopy, name: a.Name, text: "https://" + hostOf(a, rootHost)}},
		revoke: "Revoke",
		consequence: [2]line{
			{text: "The address goes away."},
			{text: "Who may open it is forgotten."},
		},
		confirm: line{"Yes, revoke " + label, action{verb: doRevoke, name: a.Name}},
	}
	if a.Status != agentapi.StatusLive {
		m.title += ": stopped"
		return m
	}
	m.open = line{"Open", action{verb: doOpen, name: a.Name}}
	m.stop = line{"Stop", action{verb: doStop, name: a.Name}}
	switch {
	case !a.Answering:
		m.title += ": not answering"
	case a.Connections > 0:
		m.title += ": " + count(a.Connections, "connection", "connections") + " now"
	}
	return m
}

func more(n int) line {
	return line{fmt.Sprintf("and %d more…", n), action{verb: doShow}}
}

// wants is the title of a request, in the menu and in a notification.
func wants(a agentapi.OwnerApp) string { return isolate(shorten(a.Label)) + " wants an address" }

// whoListens tells who would be reached: "port 8010: python3, run by maya".
func whoListens(a agentapi.OwnerApp) string {
	s := fmt.Sprintf("port %d", a.LocalPort)
	switch l := a.Listener; {
	case l.Program == "" && l.User == "":
		return s + ": no program seen there"
	case l.Program == "": // another user's, whose name the system hides
		return s + ": run by " + shorten(l.User)
	case l.User == "":
		return s + ": " + shorten(l.Program)
	default:
		return s + ": " + shorten(l.Program) + ", run by " + shorten(l.User)
	}
}

// hostOf is the address an app has, or would have.
func hostOf(a agentapi.OwnerApp, rootHost string) string {
	if a.Host != "" {
		return a.Host
	}
	if rootHost == "" {
		return a.Name
	}
	return a.Name + "." + rootHost
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// shorten makes one printable line of at most maxWords characters. Labels and
// program names come from other programs.
func shorten(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	if r := []rune(s); len(r) > maxWords {
		return strings.TrimRightFunc(string(r[:maxWords-1]), unicode.IsSpace) + "…"
	}
	return s
}

// isolate keeps the letters of a right-to-left label from reordering the words
// around it. GTK takes a line's direction from its first letter, isolated or not;
// the mark in front is that letter.
func isolate(s string) string {
	for _, r := range s {
		if unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko) {
			return "\u200e\u2068" + s + "\u2069"
		}
	}
	return s
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// String draws the menu as the golden files keep it.
func (m menu) String() string {
	var b strings.Builder
	put := func(depth int, l line) {
		if l.text == "" {
			return
		}
		fmt.Fprintf(&b, "%s%s", strings.Repeat("    ", depth), l.text)
		if l.do.verb != doNothing {
			fmt.Fprintf(&b, "  [%s", l.do.verb)
			for _, s := range []string{l.do.name, l.do.text} {
				if s != "" {
					fmt.Fprintf(&b, " %s", s)
				}
			}
			b.WriteString("]")
		}
		b.WriteString("\n")
	}
	rule := func(depth int) { fmt.Fprintf(&b, "%s--\n", strings.Repeat("    ", depth)) }
	fmt.Fprintf(&b, "(%s)\n", m.icon)
	put(0, m.status)
	put(0, m.address)
	rule(0)
	put(0, line{text: m.waitingHead})
	for _, r := range m.waiting {
		put(0, line{text: r.title + " >"})
		put(1, r.address)
		put(1, r.program)
		rule(1)
		put(1, r.approve)
		put(1, r.deny)
	}
	put(0, m.moreWaiting)
	rule(0)
	put(0, line{text: m.appsHead})
	for _, a := range m.apps {
		put(0, line{text: a.title + " >"})
		put(1, a.open)
		put(1, a.copy)
		rule(1)
		put(1, a.stop)
		put(1, line{text: a.revoke + " >"})
		put(2, a.consequence[0])
		put(2, a.consequence[1])
		rule(2)
		put(2, a.confirm)
	}
	put(0, m.moreApps)
	rule(0)
	put(0, openPorchlight)
	rule(0)
	put(0, quitPorchlight)
	return b.String()
}

var (
	openPorchlight = line{"Open Porchlight", action{verb: doShow}}
	quitPorchlight = line{"Quit Porchlight", action{verb: doQuit}}
)

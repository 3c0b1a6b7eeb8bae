package desktop

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
	"porchlight/desktop/verbs"
	"porchlight/test/golden"
)

func init() { time.Local = time.UTC } // the menu tells times of day

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func account() agentapi.Account {
	return agentapi.Account{Connected: true, Local: true, Name: "maya", Host: "maya.localhost:8443", URL: "https://maya.localhost:8443", AuthURL: "https://control.localhost:8443"}
}

func pending(name, label string, port int) agentapi.OwnerApp {
	return agentapi.OwnerApp{
		AppSummary:  agentapi.AppSummary{Name: name, Label: label, LocalPort: port, Status: agentapi.StatusPending},
		Listener:    agentapi.Listener{PID: 4711, Program: "python3", User: "maya"},
		Answering:   true,
		RequestedAt: noon,
	}
}

func live(name, label string, port int) agentapi.OwnerApp {
	a := pending(name, label, port)
	a.Status, a.Host = agentapi.StatusLive, name+".maya.localhost:8443"
	a.URL = "https://" + a.Host
	at := noon
	a.ApprovedAt = &at
	return a
}

// with changes an app.
func with(a agentapi.OwnerApp, change func(*agentapi.OwnerApp)) agentapi.OwnerApp {
	change(&a)
	return a
}

// everyday is how things are with an owner who has a few apps.
func everyday() agentapi.OwnerState {
	return agentapi.OwnerState{Account: account(), Here: 3, Apps: []agentapi.OwnerApp{
		with(live("draft", "Blog draft", 4321), func(a *agentapi.OwnerApp) { a.Paused = true }),
		with(live("home", "Home Assistant", 8123), func(a *agentapi.OwnerApp) { a.Answering = false }),
		with(live("notes", "Notes", 3000), func(a *agentapi.OwnerApp) {
			a.Connections = 4
			a.Here = []string{"carla.nunes@example.org", "maya@example.com"}
			a.OpenTo, a.OpenToCount = []string{"bob@example.com", "carla.nunes@example.org"}, 2
		}),
		pending("paperless", "Paperless", 8010),
		live("photos", "Photos", 2342),
		with(live("recipes", "Recipes", 9000), func(a *agentapi.OwnerApp) { a.Status, a.Host, a.URL = agentapi.StatusStopped, "", "" }),
	}, Grants: []agentapi.Grant{
		{ID: "g1", ClientName: "Pocket Notes", Email: "bob@example.com"},
		{ID: "g2", ClientName: "Backup script", Email: "maya@example.com"},
	}}
}

// crowded has more of everything than the menu lists.
func crowded() agentapi.OwnerState {
	s := agentapi.OwnerState{Account: account(), Here: 900}
	var emails []string
	for i := range agentapi.MaxNamed {
		emails = append(emails, fmt.Sprintf("person%02d@example.com", i))
	}
	for i := range 300 {
		a := pending(fmt.Sprintf("req%03d", i), fmt.Sprintf("Request %03d", i), 7000+i)
		a.RequestedAt = noon.Add(-time.Duration(i) * time.Minute) // the last one waits longest
		s.Apps = append(s.Apps, a)
	}
	for i := range 200 {
		s.Apps = append(s.Apps, with(live(fmt.Sprintf("app%03d", i), fmt.Sprintf("App %03d", i), 6000+i), func(a *agentapi.OwnerApp) {
			if i == 0 {
				a.Here, a.OpenTo, a.OpenToCount = emails, emails, 5000
			}
		}))
	}
	for i := range 40 {
		s.Grants = append(s.Grants, agentapi.Grant{ID: fmt.Sprintf("g%02d", i), ClientName: fmt.Sprintf("Client %02d", i), Email: "bob@example.com"})
	}
	return s
}

// hostile is what programs and people call themselves to confuse a menu.
func hostile() agentapi.OwnerState {
	return agentapi.OwnerState{Account: account(), Apps: []agentapi.OwnerApp{
		with(pending("long", strings.Repeat("Very long ", 10), 8010), func(a *agentapi.OwnerApp) { a.Listener = agentapi.Listener{} }),
		with(pending("rtl", "מחברת", 8011), func(a *agentapi.OwnerApp) { a.Listener.User = "" }),
		with(pending("ctl", "one\ntwo\x1b[31m", 8012), func(a *agentapi.OwnerApp) { a.Listener.Program = "a\nb" }),
		with(live("amp", "R&D_notes <b>", 8013), func(a *agentapi.OwnerApp) {
			a.OpenTo, a.OpenToCount = []string{strings.Repeat("x", 60) + "@example.com", "מאיה@example.com"}, 2
		}),
	}, Grants: []agentapi.Grant{
		{ID: "g1", ClientName: strings.Repeat("Client ", 20), Email: strings.Repeat("y", 60) + "@example.com"},
		{ID: "g2", ClientName: "<b>قارئ</b>", Email: "bob@example.com"},
	}}
}

func change(s agentapi.OwnerState, fn func(*agentapi.OwnerState)) agentapi.OwnerState {
	fn(&s)
	return s
}

// menuOf is the menu of an owner whose secret is there.
func menuOf(s agentapi.OwnerState, atLogin bool) menu {
	return drawn(picture{OwnerState: s, atLogin: atLogin, now: noon})
}

// menuWithout is the menu of an owner whose secret is not there.
func menuWithout(s agentapi.OwnerState, secret error) menu {
	return drawn(picture{OwnerState: s, secret: secret, now: noon})
}

// peopled is everyday with people: some may open Notes, one knocks, two and a
// connected app are here.
func peopled(people int) picture {
	p := picture{OwnerState: everyday(), now: noon}
	p.Account.Email = "maya@example.com"
	p.Knocks = []agentapi.Knock{{ID: "k1", AccountID: "dora", Email: "dora@example.org", App: "Notes", At: noon.Add(-time.Minute)}}
	p.people = []agentapi.Person{
		{Email: "maya@example.com", AccountID: "maya", Role: agentapi.RoleOwner, Status: agentapi.PersonActive, Apps: []string{"Notes", "Photos"}},
		{Email: "anna@example.com", AccountID: "anna", Role: agentapi.RoleMember, Status: agentapi.PersonActive, Apps: []string{"Photos"}},
		{Email: "bob@example.com", AccountID: "bob", Role: agentapi.RoleMember, Status: agentapi.PersonActive, Apps: []string{"Notes"}, Until: map[string]time.Time{"Notes": noon.Add(36 * time.Hour)}},
		{Email: "carla.nunes@example.org", AccountID: "carla", Role: agentapi.RoleMember, Status: agentapi.PersonActive, Apps: []string{"Notes"}},
		{Email: "kenji.watanabe@example.jp", AccountID: "kenji", Role: agentapi.RoleMember, Status: agentapi.PersonPending, Apps: []string{"Notes"}},
		{Email: "gone@example.com", AccountID: "gone", Role: agentapi.RoleMember, Status: agentapi.PersonRemoved},
	}
	for i := range people {
		email := fmt.Sprintf("person%03d@example.com", i)
		p.people = append(p.people, agentapi.Person{Email: email, AccountID: email, Role: agentapi.RoleMember, Status: agentapi.PersonActive, Apps: []string{}})
		if i < 40 {
			p.visitors = append(p.visitors, agentapi.Visitor{AccountID: email, Email: email, Apps: []string{"Notes"}, Connections: 1})
		}
	}
	p.visitors = append(p.visitors,
		agentapi.Visitor{AccountID: "maya", Email: "maya@example.com", GrantID: "g2", ClientName: "Backup script", Apps: []string{"Photos"}, Connections: 1},
		agentapi.Visitor{AccountID: "carla", Email: "carla.nunes@example.org", Apps: []string{"Notes"}, Connections: 4},
		agentapi.Visitor{AccountID: "anna", Email: "anna@example.com", Apps: []string{"Notes", "Photos"}, Connections: 2},
	)
	p.share = offer{port: 8000, program: "python3"}
	return p
}

// menus are all that the golden files keep.
func menus() map[string]menu {
	until := noon.Add(24 * time.Hour)
	return map[string]menu{
		"menu-everyday":     menuOf(everyday(), true),
		"menu-dark":         menuOf(change(everyday(), func(s *agentapi.OwnerState) { s.DarkSince, s.Here = &until, 0 }), false),
		"menu-reconnecting": menuOf(change(everyday(), func(s *agentapi.OwnerState) { s.AccessUntil = &until }), false),
		"menu-away": menuOf(change(everyday(), func(s *agentapi.OwnerState) {
			s.AccessUntil = &until
			s.Trouble = "control.porch.example does not answer. Everyone below keeps their access until tomorrow, 14:05. Inviting and removing wait."
		}), false),
		"menu-trouble": menuOf(change(everyday(), func(s *agentapi.OwnerState) {
			s.Trouble = "The relay cannot be reached, so nobody can open your apps right now. Porchlight keeps trying."
		}), false),
		"menu-silent":      menuOf(change(everyday(), func(s *agentapi.OwnerState) { s.Trouble = silence }), false),
		"menu-many":        menuOf(crowded(), false),
		"menu-hostile":     menuOf(hostile(), false),
		"menu-first":       menuOf(agentapi.OwnerState{Account: account()}, false),
		"menu-people":      drawn(peopled(0)),
		"menu-300":         drawn(peopled(300)),
		"menu-starting":    emptyMenu(iconOff, "Starting…", false),
		"menu-no-keychain": menuWithout(everyday(), errNoKeychain),
		"menu-locked":      menuWithout(everyday(), errLockedKeychain),
	}
}

func TestMenu(t *testing.T) {
	t.Parallel()
	for name, m := range menus() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden.Check(t, filepath.Join("testdata", name+".golden"), m.String())
		})
	}
}

// A panel cannot move a separator: wherever one menu has one, every menu has.
func TestSeparatorsStayInTheirPlaces(t *testing.T) {
	t.Parallel()
	var compare func(where string, a, b []line)
	compare = func(where string, a, b []line) {
		for i := range min(len(a), len(b)) {
			if a[i].rule != b[i].rule {
				t.Errorf("%s, place %d: %+v and %+v", where, i, a[i], b[i])
			}
			compare(fmt.Sprintf("%s > %d", where, i), a[i].sub, b[i].sub)
		}
		for _, l := range append(slices.Clone(a[min(len(a), len(b)):]), b[min(len(a), len(b)):]...) {
			if l.rule && len(a) > 0 && len(b) > 0 {
				t.Errorf("%s: a separator that comes and goes", where)
			}
		}
	}
	all := menus()
	for x, a := range all {
		for y, b := range all {
			if len(a.lines) != len(b.lines) {
				t.Errorf("%s has %d places, %s %d", x, len(a.lines), y, len(b.lines))
			}
			compare(x+" and "+y, a.lines, b.lines)
		}
	}
}

func TestIconOrder(t *testing.T) {
	t.Parallel()
	busy := live("notes", "Notes", 3000)
	busy.Connections = 1
	dead := with(live("notes", "Notes", 3000), func(a *agentapi.OwnerApp) { a.Answering = false })
	stopped := live("notes", "Notes", 3000)
	stopped.Status = agentapi.StatusStopped
	paused := with(live("p", "P", 4), func(a *agentapi.OwnerApp) { a.Paused = true })
	of := func(here int, apps ...agentapi.OwnerApp) agentapi.OwnerState {
		return agentapi.OwnerState{Here: here, Apps: apps}
	}
	for _, c := range []struct {
		want   string
		status string
		s      agentapi.OwnerState
	}{
		{iconOff, "No app is on", of(0)},
		{iconOff, "No app is on", of(1, stopped)},
		{iconOff, "No app answers", of(1, dead)},
		{iconOff, "No app is on", of(1, paused)},
		{iconOff, "No app answers", of(0, doing("a", agentapi.HealthHTTPS), doing("b", agentapi.HealthSilent))},
		{iconReady, "On. Nobody here now", of(0, doing("a", agentapi.HealthHTTPS), doing("b", agentapi.HealthAnswers))},
		{iconOff, "No app answers", of(1, doing("a", agentapi.HealthWrong))},
		{iconReady, "On. Nobody here now", of(0, doing("a", agentapi.HealthWrong), live("b", "B", 2))},
		{iconReady, "On. Nobody here now", of(0, live("a", "A", 1))},
		{iconConnected, "On. 1 person here now", of(1, busy, live("a", "A", 1))},
		{iconConnected, "On. 2 people here now", of(2, busy, paused)},
		{iconWaiting, "On. 2 people here now", of(2, busy, pending("b", "B", 2))},
		{iconWaiting, "No app is on", of(0, pending("b", "B", 2))},
		{iconTrouble, "Out.", change(of(2, busy, pending("b", "B", 2)), func(s *agentapi.OwnerState) { s.Trouble = "Out." })},
		{iconOff, "Dark since 12:00", change(of(0, busy), func(s *agentapi.OwnerState) { s.DarkSince = &noon })},
		{iconWaiting, "Dark since 12:00", change(of(0, busy, pending("b", "B", 2)), func(s *agentapi.OwnerState) { s.DarkSince = &noon })},
		{iconTrouble, "Dark since 12:00", change(of(0, busy), func(s *agentapi.OwnerState) { s.DarkSince, s.Trouble = &noon, "Out." })},
		{iconReady, "Reconnecting…", change(of(1, busy), func(s *agentapi.OwnerState) { s.AccessUntil = &noon })},
		{iconReady, "Reconnecting…", change(of(1, busy), func(s *agentapi.OwnerState) { s.Account = account(); s.Account.Connected = false })},
		{iconTrouble, "Reconnecting…", change(of(1, busy), func(s *agentapi.OwnerState) { s.AccessUntil, s.Trouble = &noon, "Out." })},
	} {
		if m := menuOf(c.s, false); m.icon != c.want || m.status() != c.status {
			t.Errorf("icon %q, %q; want %q, %q (%+v)", m.icon, m.status(), c.want, c.status, c.s)
		}
	}
}

// doing is a live app of which it is known how it does.
func doing(name string, h agentapi.Health) agentapi.OwnerApp {
	return with(live(name, "App "+name, 3000), func(a *agentapi.OwnerApp) { a.Health, a.HealthDetail = h, "It does "+string(h)+"." })
}

// What keeps visitors from an app stands behind its name.
func TestAilments(t *testing.T) {
	t.Parallel()
	for h, want := range map[agentapi.Health]string{
		agentapi.HealthUnknown: "", agentapi.HealthAnswers: "", agentapi.HealthNothing: ": not answering",
		agentapi.HealthRefuses: ": refuses its address", agentapi.HealthHTTPS: ": speaks HTTPS", agentapi.HealthH2C: ": speaks HTTP/2",
		agentapi.HealthSilent: ": not answering", agentapi.HealthWrong: ": answers wrongly", "of a later version": ": not answering",
	} {
		one := doing("a", h)
		if got := appStanding(one); got != want {
			t.Errorf("%q: %q, want %q", h, got, want)
		}
		one.Paused = true
		if got := appStanding(one); got != ": paused" {
			t.Errorf("%q, paused: %q", h, got)
		}
		n := (&app{}).approved(verbs.Action{Verb: verbs.Approve, Label: "App a"}, agentapi.Approved{Publication: agentapi.Publication{Status: agentapi.StatusLive}, AppHealth: &one.AppHealth})
		if n.title != "App a is on" || strings.Contains(n.body, one.HealthDetail) != (want != "") {
			t.Errorf("%q: told %+v", h, n)
		}
	}
	noted := doing("a", agentapi.HealthAnswers)
	noted.HealthNote = true
	n := (&app{}).approved(verbs.Action{Verb: verbs.Approve, Label: "App a"}, agentapi.Approved{Publication: agentapi.Publication{Status: agentapi.StatusLive}, AppHealth: &noted.AppHealth})
	if !strings.Contains(n.body, noted.HealthDetail) || appStanding(noted) != "" {
		t.Errorf("one that answers with an error to everybody: told %+v, standing %q", n, appStanding(noted))
	}
}

// Open is offered only where it opens something; else the line says why.
func TestOpenIsOfferedWhereItOpens(t *testing.T) {
	t.Parallel()
	notes := live("notes", "Notes", 3000)
	paused := with(notes, func(a *agentapi.OwnerApp) { a.Paused = true })
	stopped := with(notes, func(a *agentapi.OwnerApp) { a.Status = agentapi.StatusStopped })
	open := verbs.Action{Verb: verbs.Open, Name: "notes"}
	for _, c := range []struct {
		app  agentapi.OwnerApp
		dark bool
		want line
	}{
		{notes, false, line{text: "Open", do: open}},
		{notes, true, line{text: "Open: not while dark"}},
		{paused, false, line{text: "Open: not while paused"}},
		{paused, true, line{text: "Open: not while dark"}},
		{stopped, false, line{}},
		{stopped, true, line{}},
	} {
		if got := appOf(pictureOf(c.dark), c.app).sub[0]; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s, paused %v, dark %v: %+v, want %+v", c.app.Status, c.app.Paused, c.dark, got, c.want)
		}
	}
}

// Weakness: an app that took itself off could be put on again in the window alone.
func TestWhatIsOffCanBeResumed(t *testing.T) {
	t.Parallel()
	notes := live("notes", "Notes", 3000)
	resume := line{text: "Resume", do: verbs.Action{Verb: verbs.Resume, Name: "notes", Label: "Notes"}}
	for _, c := range []struct {
		status agentapi.Status
		paused bool
		want   line
	}{
		{agentapi.StatusLive, false, line{text: "Pause", do: verbs.Action{Verb: verbs.Pause, Name: "notes", Label: "Notes"}}},
		{agentapi.StatusLive, true, resume},
		{agentapi.StatusStopped, false, resume},
		{agentapi.StatusStopped, true, resume},
	} {
		a := with(notes, func(a *agentapi.OwnerApp) { a.Status, a.Paused = c.status, c.paused })
		if got := appOf(pictureOf(false), a).sub; !slices.ContainsFunc(got, func(l line) bool { return reflect.DeepEqual(l, c.want) }) {
			t.Errorf("%s, paused %v: no %+v in %+v", c.status, c.paused, c.want, got)
		}
	}
}

func pictureOf(dark bool) (p picture) {
	if p.now = noon; dark {
		p.DarkSince = &noon
	}
	return p
}

func TestMenuSaysWhoseTheAgentIs(t *testing.T) {
	t.Parallel()
	for mode, want := range map[agentapi.Mode]string{
		agentapi.ModeDesktop:  "No app is on",
		agentapi.ModeHeadless: "No app is on, in another process",
		agentapi.ModeBundled:  "No app is on, brought along by an app",
	} {
		if got := menuOf(agentapi.OwnerState{Mode: mode}, false).status(); got != want {
			t.Errorf("%s: %q, want %q", mode, got, want)
		}
	}
}

// silence is what is wrong with an agent that does not answer.
const silence = "Porchlight is not answering. Its process may be stopped or busy. This is how things were."

// TestAnotherUsersProgramIsShown: of an app that waits because another user's
// program listens, menu and notification say whose it was and whose it is.
func TestAnotherUsersProgramIsShown(t *testing.T) {
	t.Parallel()
	app := pending("notes", "Notes", 8000)
	app.Listener = agentapi.Listener{User: "nobody"}
	app.ApprovedListener = &agentapi.Listener{User: "ada", Program: "python3"}
	const want = "Notes was approved for ada; now a program of nobody listens on port 8000."
	if body := requestNote(app, "maya.porch.example").body; !strings.HasPrefix(body, want) || strings.Contains(body, "Only you") {
		t.Errorf("the notification says %q", body)
	}
	var lines []string
	for _, l := range requestOf(app, "maya.porch.example").sub {
		lines = append(lines, l.text)
	}
	if all := strings.Join(lines, " "); !strings.Contains(all, want) {
		t.Errorf("the menu says %q", all)
	}
	for want, change := range map[string]func(*agentapi.OwnerApp){
		"Notes was approved for ada; now nc, run by nobody, listens on port 8000.":                               func(a *agentapi.OwnerApp) { a.Listener.Program = "nc" },
		"Notes was approved for ada; now a program that cannot be seen listens on port 8000.":                    func(a *agentapi.OwnerApp) { a.Listener = agentapi.Listener{} },
		"Notes was approved for a program that could not be seen; now a program of nobody listens on port 8000.": func(a *agentapi.OwnerApp) { a.ApprovedListener = &agentapi.Listener{} },
		"": func(a *agentapi.OwnerApp) { a.ApprovedListener = nil },
	} {
		if got := with(app, change).ListenerChange(language.Named); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

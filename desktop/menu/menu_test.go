package menu_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/ownersecret"
	"porchlight/desktop/language"
	"porchlight/desktop/menu"
	"porchlight/desktop/verbs"
	"porchlight/test/golden"
	"porchlight/test/owner"
)

// menuOf is the menu of an owner whose secret is there.
func menuOf(s agentapi.OwnerState, atLogin bool) menu.Menu {
	return menu.Draw(menu.Picture{OwnerState: s, AtLogin: atLogin, Now: owner.Noon})
}

// menuWithout is the menu of an owner whose secret is not there.
func menuWithout(s agentapi.OwnerState, secret error) menu.Menu {
	return menu.Draw(menu.Picture{OwnerState: s, Secret: secret, Now: owner.Noon})
}

// peopled is the picture of owner.Peopled.
func peopled(more int) menu.Picture {
	p := menu.Picture{Now: owner.Noon, Share: menu.Offer{Port: 8000, Program: "python3"}}
	p.OwnerState, p.People, p.Visitors = owner.Peopled(more)
	return p
}

// connected has an owner's computer have a server.
func connected(s *agentapi.OwnerState) {
	s.Account.Local, s.Account.Host, s.Account.URL = false, "maya.porch.example", "https://maya.porch.example"
}

// menus are all that the golden files keep.
func menus() map[string]menu.Menu {
	until := owner.Noon.Add(24 * time.Hour)
	return map[string]menu.Menu{
		"menu-everyday":     menuOf(owner.Everyday(), true),
		"menu-dark":         menuOf(owner.Change(owner.Everyday(), func(s *agentapi.OwnerState) { s.DarkSince, s.Here = &until, 0 }), false),
		"menu-reconnecting": menuOf(owner.Change(owner.Everyday(), func(s *agentapi.OwnerState) { s.AccessUntil = &until }), false),
		"menu-away": menuOf(owner.Change(owner.Everyday(), func(s *agentapi.OwnerState) {
			s.AccessUntil = &until
			s.Trouble = "control.porch.example does not answer. Everyone below keeps their access until tomorrow, 14:05. Inviting and removing wait."
		}), false),
		"menu-trouble": menuOf(owner.Change(owner.Everyday(), func(s *agentapi.OwnerState) {
			s.Trouble = "The relay cannot be reached, so nobody can open your apps right now. Porchlight keeps trying."
		}), false),
		"menu-silent":      menuOf(owner.Change(owner.Everyday(), func(s *agentapi.OwnerState) { s.Trouble = owner.Silence }), false),
		"menu-many":        menuOf(owner.Crowded(), false),
		"menu-hostile":     menuOf(owner.Hostile(), false),
		"menu-first":       menuOf(agentapi.OwnerState{Account: owner.Account()}, false),
		"menu-people":      menu.Draw(peopled(0)),
		"menu-300":         menu.Draw(peopled(300)),
		"menu-connected":   menuOf(owner.Change(owner.Everyday(), connected), false),
		"menu-starting":    menu.Empty(menu.IconOff, "Starting…", false),
		"menu-no-keychain": menuWithout(owner.Everyday(), ownersecret.ErrUnavailable),
		"menu-locked":      menuWithout(owner.Everyday(), ownersecret.ErrLocked),
	}
}

func TestMenu(t *testing.T) {
	t.Parallel()
	for name, m := range menus() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden.Check(t, filepath.Join("testdata", name+".golden"), printed(m))
		})
	}
}

// A panel cannot move a separator, nor make a menu of a line that it has drawn: wherever one
// menu has one, every menu has.
func TestSeparatorsAndMenusStayInTheirPlaces(t *testing.T) {
	t.Parallel()
	var compare func(where string, a, b []menu.Line)
	compare = func(where string, a, b []menu.Line) {
		for i := range min(len(a), len(b)) {
			if a[i].Rule != b[i].Rule {
				t.Errorf("%s, place %d: %+v and %+v", where, i, a[i], b[i])
			}
			if (a[i].Sub == nil) != (b[i].Sub == nil) {
				t.Errorf("%s, place %d: a menu below %q or %q only", where, i, a[i].Text, b[i].Text)
			}
			compare(fmt.Sprintf("%s > %d", where, i), a[i].Sub, b[i].Sub)
		}
		for _, l := range append(slices.Clone(a[min(len(a), len(b)):]), b[min(len(a), len(b)):]...) {
			if l.Rule && len(a) > 0 && len(b) > 0 {
				t.Errorf("%s: a separator that comes and goes", where)
			}
		}
	}
	all := menus()
	for x, a := range all {
		for y, b := range all {
			if len(a.Lines) != len(b.Lines) {
				t.Errorf("%s has %d places, %s %d", x, len(a.Lines), y, len(b.Lines))
			}
			compare(x+" and "+y, a.Lines, b.Lines)
		}
	}
}

func TestIconOrder(t *testing.T) {
	t.Parallel()
	busy := owner.Live("notes", "Notes", 3000)
	busy.Connections = 1
	dead := owner.With(owner.Live("notes", "Notes", 3000), func(a *agentapi.OwnerApp) { a.Ailment = "not answering" })
	stopped := owner.Live("notes", "Notes", 3000)
	stopped.Status, stopped.Lit = agentapi.StatusStopped, false
	paused := owner.With(owner.Live("p", "P", 4), func(a *agentapi.OwnerApp) { a.Paused = true })
	of := func(here int, apps ...agentapi.OwnerApp) agentapi.OwnerState {
		return agentapi.OwnerState{Here: here, Apps: apps}
	}
	for _, c := range []struct {
		want   string
		status string
		s      agentapi.OwnerState
	}{
		{"off", "No app is on", of(0)},
		{"off", "No app is on", of(1, stopped)},
		{"off", "No app answers", of(1, dead)},
		{"off", "No app is on", of(1, paused)},
		{"off", "No app answers", of(0, owner.Doing("a", "speaks HTTPS"), owner.Doing("b", "not answering"))},
		{"ready", "On. Nobody here now", of(0, owner.Doing("a", "speaks HTTPS"), owner.Doing("b", ""))},
		{"off", "No app answers", of(1, owner.Doing("a", "answers wrongly"))},
		{"ready", "On. Nobody here now", of(0, owner.Doing("a", "answers wrongly"), owner.Live("b", "B", 2))},
		{"ready", "On. Nobody here now", of(0, owner.Live("a", "A", 1))},
		{"connected", "On. 1 here now", of(1, busy, owner.Live("a", "A", 1))},
		{"connected", "On. 2 here now", of(2, busy, paused)},
		{"waiting", "On. 2 here now", of(2, busy, owner.Pending("b", "B", 2))},
		{"waiting", "No app is on", of(0, owner.Pending("b", "B", 2))},
		{"trouble", "Out.", owner.Change(of(2, busy, owner.Pending("b", "B", 2)), func(s *agentapi.OwnerState) { s.Trouble = "Out." })},
		{"off", "Dark since 12:00", owner.Change(of(0, busy), func(s *agentapi.OwnerState) { s.DarkSince = &owner.Noon })},
		{"waiting", "Dark since 12:00", owner.Change(of(0, busy, owner.Pending("b", "B", 2)), func(s *agentapi.OwnerState) { s.DarkSince = &owner.Noon })},
		{"trouble", "Dark since 12:00", owner.Change(of(0, busy), func(s *agentapi.OwnerState) { s.DarkSince, s.Trouble = &owner.Noon, "Out." })},
		{"ready", "Reconnecting…", owner.Change(of(1, busy), func(s *agentapi.OwnerState) { s.AccessUntil = &owner.Noon })},
		{"ready", "Reconnecting…", owner.Change(of(1, busy), func(s *agentapi.OwnerState) { s.Account = owner.Account(); s.Account.Connected = false })},
		{"trouble", "Reconnecting…", owner.Change(of(1, busy), func(s *agentapi.OwnerState) { s.AccessUntil, s.Trouble = &owner.Noon, "Out." })},
	} {
		if m := menuOf(c.s, false); m.Icon != c.want || m.Lines[0].Text != c.status {
			t.Errorf("icon %q, %q; want %q, %q (%+v)", m.Icon, m.Lines[0].Text, c.want, c.status, c.s)
		}
	}
}

func TestMenuSaysWhoseTheAgentIs(t *testing.T) {
	t.Parallel()
	for mode, want := range map[agentapi.Mode]string{
		agentapi.ModeDesktop:  "No app is on",
		agentapi.ModeHeadless: "No app is on, in another process",
		agentapi.ModeBundled:  "No app is on, brought along by an app",
	} {
		if got := menuOf(agentapi.OwnerState{Mode: mode}, false).Lines[0].Text; got != want {
			t.Errorf("%s: %q, want %q", mode, got, want)
		}
	}
}

// Of more apps than the menu lists, those opened most are there, in the agent's order. OW14.
func TestMenuOfManyAppsHasTheMostUsed(t *testing.T) {
	t.Parallel()
	shown := func(apps []agentapi.OwnerApp) (labels []string) {
		for _, l := range menuOf(owner.State(apps...), false).Lines {
			if strings.HasPrefix(l.Text, "Notes") {
				labels = append(labels, l.Text)
			}
		}
		return labels
	}
	var apps []agentapi.OwnerApp
	var first, used []string
	for i := range 20 {
		apps = append(apps, owner.Live(fmt.Sprintf("n%02d", 20-i), fmt.Sprintf("Notes %d", i+1), 3000+i))
		if i < 15 {
			first = append(first, apps[i].Label)
		}
		if i >= 2 && i != 5 && i != 8 && i != 14 {
			used = append(used, apps[i].Label)
		}
	}
	if got := shown(apps); !slices.Equal(got, first) {
		t.Errorf("of apps that nobody opened: %q", got)
	}
	for i := range apps {
		if apps[i].Visits = 1 + (i*7)%5; !slices.Contains(used, apps[i].Label) {
			apps[i].Visits = 0
		}
	}
	if got := shown(apps); !slices.Equal(got, used) {
		t.Errorf("of apps in use: %q, want %q", got, used)
	}
	apps[3].Visits += 100
	if got := shown(apps); !slices.Equal(got, used) {
		t.Errorf("a visit moved lines: %q", got)
	}
}

// appLine is the line of the only app of an owner.
func appLine(t *testing.T, a agentapi.OwnerApp, dark bool) menu.Line {
	t.Helper()
	s := owner.State(a)
	if dark {
		s.DarkSince = &owner.Noon
	}
	lines := menuOf(s, false).Lines
	i := slices.IndexFunc(lines, func(l menu.Line) bool { return strings.HasPrefix(l.Text, a.Label) })
	if i < 0 {
		t.Fatalf("%s is not in the menu", a.Label)
	}
	return lines[i]
}

// What keeps visitors from an app stands behind its name.
func TestAilments(t *testing.T) {
	t.Parallel()
	for h, want := range map[string]string{"": "", "not answering": ": not answering", "of a later version": ": of a later version"} {
		one := owner.Doing("a", h)
		one.HealthNote = want == "" // an error to everybody is no ailment
		if got := appLine(t, one, false).Text; got != "App a"+want {
			t.Errorf("%q: %q, want %q", h, got, want)
		}
		one.Paused = true
		if got := appLine(t, one, false).Text; got != "App a: paused" {
			t.Errorf("%q, paused: %q", h, got)
		}
	}
}

// Open is offered only where it opens something; else the line says why.
func TestOpenIsOfferedWhereItOpens(t *testing.T) {
	t.Parallel()
	notes := owner.Live("notes", "Notes", 3000)
	paused := owner.With(notes, func(a *agentapi.OwnerApp) { a.Paused = true })
	stopped := owner.With(notes, func(a *agentapi.OwnerApp) { a.Status = agentapi.StatusStopped })
	open := verbs.Action{Verb: verbs.Open, Name: "notes"}
	for _, c := range []struct {
		app  agentapi.OwnerApp
		dark bool
		want menu.Line
	}{
		{notes, false, menu.Line{Text: "Open", Do: open}},
		{notes, true, menu.Line{Text: "Open: not while dark"}},
		{paused, false, menu.Line{Text: "Open: not while paused"}},
		{paused, true, menu.Line{Text: "Open: not while dark"}},
		{stopped, false, menu.Line{}},
		{stopped, true, menu.Line{}},
	} {
		if got := appLine(t, c.app, c.dark).Sub[0]; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s, paused %v, dark %v: %+v, want %+v", c.app.Status, c.app.Paused, c.dark, got, c.want)
		}
	}
}

// An app's own domain is set in the window, where a server looks it up: that is offered for apps
// that are live and have an address of the web, and nowhere else.
func TestOwnDomainIsOfferedWithAServer(t *testing.T) {
	t.Parallel()
	notes := owner.Live("notes", "Notes", 3000)
	paused := owner.With(notes, func(a *agentapi.OwnerApp) { a.Paused = true })
	stopped := owner.With(notes, func(a *agentapi.OwnerApp) { a.Status = agentapi.StatusStopped })
	overTCP := owner.With(notes, func(a *agentapi.OwnerApp) { a.TCP = true })
	for _, c := range []struct {
		what   string
		app    agentapi.OwnerApp
		server bool
		want   bool
	}{
		{"live", notes, true, true}, {"paused", paused, true, true}, {"stopped", stopped, true, false}, {"over TCP", overTCP, true, false}, {"on its own", notes, false, false},
	} {
		s := owner.State(c.app)
		if c.server {
			connected(&s)
		}
		var offered []verbs.Action
		for _, l := range menuOf(s, false).Lines {
			for _, sub := range l.Sub {
				if sub.Text == "Own domain…" {
					offered = append(offered, sub.Do)
				}
			}
		}
		if want := (verbs.Action{Verb: verbs.Show, View: verbs.ViewApps, Name: "notes"}); c.want != (len(offered) == 1 && offered[0] == want) || !c.want && len(offered) != 0 {
			t.Errorf("%s: offered are %+v", c.what, offered)
		}
	}
}

// Weakness: an app that took itself off could be put on again in the window alone.
func TestWhatIsOffCanBeResumed(t *testing.T) {
	t.Parallel()
	notes := owner.Live("notes", "Notes", 3000)
	resume := menu.Line{Text: "Resume", Do: verbs.Action{Verb: verbs.Resume, Name: "notes", Label: "Notes"}}
	for _, c := range []struct {
		status agentapi.Status
		paused bool
		want   menu.Line
	}{
		{agentapi.StatusLive, false, menu.Line{Text: "Pause", Do: verbs.Action{Verb: verbs.Pause, Name: "notes", Label: "Notes"}}},
		{agentapi.StatusLive, true, resume},
		{agentapi.StatusStopped, false, resume},
		{agentapi.StatusStopped, true, resume},
	} {
		a := owner.With(notes, func(a *agentapi.OwnerApp) { a.Status, a.Paused = c.status, c.paused })
		if got := appLine(t, a, false).Sub; !slices.ContainsFunc(got, func(l menu.Line) bool { return reflect.DeepEqual(l, c.want) }) {
			t.Errorf("%s, paused %v: no %+v in %+v", c.status, c.paused, c.want, got)
		}
	}
}

// A yes is to what was read: the line sends all of it.
func TestApproveSendsWhatIsShown(t *testing.T) {
	t.Parallel()
	asked := owner.Pending("notes", "Notes", 3000)
	if do := lineOf(t, menuOf(owner.State(asked), false).Lines, "Notes wants an address", "Approve").Do; do != verbs.ApproveOf(asked) {
		t.Errorf("it does %+v", do)
	}
}

// An approval that ends says so, in the app's line where nothing else is to be said, and in
// its menu; so does a request of an app whose approval ends.
func TestApprovalsThatEndSaySo(t *testing.T) {
	t.Parallel()
	evening, midnight := owner.Noon.Add(6*time.Hour), owner.Noon.Add(12*time.Hour-time.Second)
	live := owner.Live("notes", "Notes", 3000)
	for end, want := range map[time.Time]string{evening: language.MomentOf(evening, owner.Noon), midnight: "today", midnight.Add(time.Second): "today", midnight.Add(24 * time.Hour): "tomorrow"} {
		a := owner.With(live, func(a *agentapi.OwnerApp) { a.Until = &end })
		line := appLine(t, a, false)
		if line.Text != "Notes: until "+want {
			t.Errorf("%v: %q", end, line.Text)
		}
		lineOf(t, line.Sub, "Approved until "+want)
		again := owner.With(owner.Pending("notes", "Notes", 3000), func(a *agentapi.OwnerApp) { a.ApprovedAt, a.Until = &owner.Noon, &end })
		lineOf(t, menuOf(owner.State(again), false).Lines, "Notes has changed", "Approved until "+want)
	}
}

func TestAppInTheNetworkSaysSo(t *testing.T) {
	t.Parallel()
	open := owner.Live("notes", "Notes", 3000)
	open.InNetwork = agentapi.InNetwork{Network: true, NetworkDetail: "Other computers can open port 3000."}
	lineOf(t, appLine(t, open, false).Sub, "Other computers can open it directly", "Other computers can open port 3000.")
}

// S1: another user of the computer is asked about in the menu until the owner answered.
func TestAnotherUserIsInTheMenu(t *testing.T) {
	t.Parallel()
	alice := agentapi.LocalUser{ID: "1001", Name: "alice", Standing: agentapi.UserAsks}
	s := owner.State()
	s.Users = []agentapi.LocalUser{alice}
	m := menuOf(s, false)
	if do := lineOf(t, m.Lines, "User alice wants in", "Allow").Do; do != verbs.AllowOf(alice) || m.Icon != "waiting" {
		t.Errorf("the menu does %+v, icon %s", do, m.Icon)
	}
	s.Users[0].Standing = agentapi.UserDenied
	if m := menuOf(s, false); m.Icon == "waiting" {
		t.Error("after the answer somebody waits")
	}
}

package desktop

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"porchlight/agent/agentapi"
)

var update = flag.Bool("update", false, "write the golden files again")

// golden compares got with testdata/NAME.golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

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

func TestMenu(t *testing.T) {
	t.Parallel()
	with := func(a agentapi.OwnerApp, change func(*agentapi.OwnerApp)) agentapi.OwnerApp { change(&a); return a }
	everyday := agentapi.OwnerState{Account: account(), Apps: []agentapi.OwnerApp{
		with(live("home", "Home Assistant", 8123), func(a *agentapi.OwnerApp) { a.Answering = false }),
		with(live("notes", "Notes", 3000), func(a *agentapi.OwnerApp) { a.Connections = 2 }),
		pending("paperless", "Paperless", 8010),
		live("photos", "Photos", 2342),
		with(live("recipes", "Recipes", 9000), func(a *agentapi.OwnerApp) { a.Status, a.Host, a.URL = agentapi.StatusRevoked, "", "" }),
	}}
	trouble := everyday
	trouble.Trouble = "The relay on this computer stopped: address already in use."
	var many agentapi.OwnerState
	many.Account = account()
	for i := range 12 {
		a := pending(fmt.Sprintf("req%02d", i), fmt.Sprintf("Request %02d", i), 7000+i)
		a.RequestedAt = noon.Add(-time.Duration(i) * time.Minute) // the last one waits longest
		many.Apps = append(many.Apps, a, live(fmt.Sprintf("app%02d", i), fmt.Sprintf("App %02d", i), 6000+i), live(fmt.Sprintf("bpp%02d", i), fmt.Sprintf("Bpp %02d", i), 6100+i))
	}
	hostile := agentapi.OwnerState{Account: account(), Apps: []agentapi.OwnerApp{
		with(pending("long", strings.Repeat("Very long ", 10), 8010), func(a *agentapi.OwnerApp) { a.Listener = agentapi.Listener{} }),
		with(pending("rtl", "מחברת", 8011), func(a *agentapi.OwnerApp) { a.Listener.User = "" }),
		with(pending("ctl", "one\ntwo\x1b[31m", 8012), func(a *agentapi.OwnerApp) { a.Listener.Program = "a\nb" }),
		live("amp", "R&D_notes <b>", 8013),
	}}
	for name, m := range map[string]menu{
		"menu-everyday": menuOf(everyday),
		"menu-trouble":  menuOf(trouble),
		"menu-many":     menuOf(many),
		"menu-hostile":  menuOf(hostile),
		"menu-first":    menuOf(agentapi.OwnerState{Account: account()}),
		"menu-starting": plainMenu(iconOff, "Starting…"),
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); golden(t, name, m.String()) })
	}
}

func TestIconOrder(t *testing.T) {
	t.Parallel()
	busy := live("notes", "Notes", 3000)
	busy.Connections = 1
	stopped := live("notes", "Notes", 3000)
	stopped.Status = agentapi.StatusRevoked
	for _, c := range []struct {
		want    string
		trouble string
		apps    []agentapi.OwnerApp
	}{
		{iconOff, "", nil},
		{iconOff, "", []agentapi.OwnerApp{stopped}},
		{iconReady, "", []agentapi.OwnerApp{live("a", "A", 1)}},
		{iconConnected, "", []agentapi.OwnerApp{busy, live("a", "A", 1)}},
		{iconWaiting, "", []agentapi.OwnerApp{busy, pending("b", "B", 2)}},
		{iconTrouble, "x", []agentapi.OwnerApp{busy, pending("b", "B", 2)}},
	} {
		if got := menuOf(agentapi.OwnerState{Trouble: c.trouble, Apps: c.apps}).icon; got != c.want {
			t.Errorf("icon %q, want %q (trouble %q, apps %v)", got, c.want, c.trouble, c.apps)
		}
	}
}

// Whatever a program calls itself, a line of the menu stays one short line.
func FuzzShorten(f *testing.F) {
	for _, s := range []string{"", "Notes", "a\nb", strings.Repeat("é", 200), "\u202eabc", "\xff\xfe"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := shorten(s)
		if n := utf8.RuneCountInString(got); n > maxWords {
			t.Fatalf("%d characters", n)
		}
		if strings.ContainsAny(got, "\r\n\t\x00\x1b") {
			t.Fatalf("control characters in %q", got)
		}
	})
}

func TestWhoListens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listener agentapi.Listener
		want     string
	}{
		{agentapi.Listener{PID: 7, Program: "python3", User: "maya"}, "port 8010: python3, run by maya"},
		{agentapi.Listener{PID: 7, Program: "python3"}, "port 8010: python3"},
		{agentapi.Listener{User: "www-data"}, "port 8010: run by www-data"},
		{agentapi.Listener{}, "port 8010: no program seen there"},
	} {
		app := pending("paperless", "Paperless", 8010)
		app.Listener = c.listener
		if got := whoListens(app); got != c.want {
			t.Errorf("%+v: %q, want %q", c.listener, got, c.want)
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
		if got := menuOf(agentapi.OwnerState{Mode: mode}).status.text; got != want {
			t.Errorf("%s: %q, want %q", mode, got, want)
		}
	}
}

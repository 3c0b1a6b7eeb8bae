//go:build rig

package desktop

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/test/programs"
)

// Three hundred requests at once: one notification on the screen, a menu of
// ordinary length, and a decision that counts.
func TestThreeHundredRequests(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	p := s.launch()
	s.trayShows("No app is on", true)
	labels := []string{strings.Repeat("Very long ", 9), "<b>Markup</b> &amp; more", "מחברת", "{{.}} %s %d"}
	port := webApp(t, "first")
	for i := range 300 {
		label := fmt.Sprintf("App %03d", i)
		if i < len(labels) {
			label = labels[i]
		}
		p.publish(fmt.Sprintf("app-%03d", i), label, port)
	}
	s.trayShows("and 295 more…", true)
	s.eventually("one notification is on the screen, of all of them", func() error {
		shown, err := s.tool("dunstctl", "count", "displayed")
		if err != nil {
			return err
		}
		waiting, err := s.tool("dunstctl", "count", "waiting")
		if err == nil && (shown != "1\n" || waiting != "0\n") {
			err = fmt.Errorf("%s displayed, %s waiting", shown, waiting)
		}
		return err
	})
	s.notified("300 apps want an address")
	lines, took := s.menuTime()
	t.Logf("reading a menu with 300 requests: %v, %d lines", took.Round(100*time.Microsecond), len(lines))
	if len(lines) > 80 {
		t.Errorf("the menu has %d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	s.trayShows("<b>Markup</b> &amp; more wants an address > Approve", true)
	for i := range 5 {
		s.openTray()
		s.shot("menu")
		s.down(2 + i) // the address, and the requests
		s.keys("Right")
		s.menuOpen(2)
		s.closeMenus()
	}
	s.trayClick("<b>Markup</b> &amp; more wants an address > Approve")
	p.is("app-001", "live")
	p.isStill("app-000", "pending")
	s.trayShows("and 294 more…", true)
}

// At the start everything is there at once: each app's menu opens, and what is
// below it, with nothing lost on the way to the panel.
func TestEveryMenuOpens(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	p := s.launch()
	s.trayShows("No app is on", true)
	const apps = 4
	for i := range apps {
		name := fmt.Sprintf("app-%d", i)
		p.publish(name, "App "+name, webApp(t, name))
		programs.Got(p.ownerTier().Approve(t.Context(), name))(t)
	}
	p.quit()
	p.restart("--hidden")
	s.trayShows("App app-3 > Revoke > Yes, revoke App app-3", true)

	p.publish("asks", "Asks", webApp(t, "asks")) // its mark is where to click
	s.trayShows("Asks wants an address > Approve", true)
	for i := range apps {
		for _, way := range []string{"Down Down Right", "Up Right"} { // who may open it; round to the last line, Revoke
			s.openTray()
			s.down(3 + i) // the address, the request, and the apps
			s.keys("Right")
			s.menuOpen(2)
			s.keys(strings.Fields(way)...)
			s.menuOpen(3)
			s.shot(fmt.Sprintf("app-%d", i))
			s.closeMenus()
		}
	}
}

func (s *session) down(n int) {
	s.t.Helper()
	if n > 0 {
		s.keys(slices.Repeat([]string{"Down"}, n)...)
	}
}

func (s *session) closeMenus() {
	s.t.Helper()
	s.keys("Escape", "Escape", "Escape")
	s.menuOpen(0)
}

// What a program does with the people of this computer is told with a way back.
func TestUndoOnTheNotification(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{picks: "Undo"})
	p := s.launch()
	notes := p.approved("notes", "Notes", streamApp(t))
	p.approved("photos", "Photos", webApp(t, "photos"))
	bob := p.member("bob@example.com", "Photos")
	p.answers(bob, notes, http.StatusForbidden)

	_, answer, err := p.call("POST", "/engine/register", map[string]any{"appId": "com.example.wiki", "pid": os.Getpid()})
	programs.Must(t, err)
	capability, _ := answer["capability"].(string)
	s.notified("An invitation was accepted", "bob@example.com opened Photos for the first time") // and what was told so far off the screen
	p.grant(capability, p.person("bob@example.com").AccountID, "Notes")
	s.displays("1")
	s.shot("notification")
	p.answers(bob, notes, http.StatusOK) // his first visit, of whom the owner was told a moment ago
	open := openStream(t, bob.Do, notes, nil)
	pressed := time.Now()
	s.mustTool("dunstctl", "context") // lists the buttons and has Undo picked
	open.ends(t, "Undo", pressed)
	shut(t, bob, notes)
}

// grant gives an app to somebody, as a program that registered does.
func (p *program) grant(capability, accountID, label string) {
	p.t.Helper()
	req, err := http.NewRequest("POST", "http://"+p.api+"/people/grant", strings.NewReader(fmt.Sprintf(`{"accountId":%q,"app":%q,"granted":true}`, accountID, label)))
	programs.Must(p.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Engine-Capability", capability)
	resp := programs.Got(http.DefaultClient.Do(req))(p.t)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		p.t.Fatalf("grant: %s", resp.Status)
	}
}

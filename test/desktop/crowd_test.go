//go:build rig

package desktop

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// Three hundred requests at once: one notification on the screen, a menu of
// ordinary length, and a decision that counts.
func TestThreeHundredRequests(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	p := s.launch()
	p.serving()
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
	s.openTray()
	s.shot("menu")
	s.keys("Escape")
	s.trayClick("<b>Markup</b> &amp; more wants an address > Approve")
	p.is("app-001", "live")
	p.isStill("app-000", "pending")
	s.trayShows("and 294 more…", true)
}

// What a program does with the people of this computer is told with a way back.
func TestUndoOnTheNotification(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{picks: "Undo"})
	p := s.launch()
	p.serving()
	notes := p.approved("notes", "Notes", streamApp(t))
	p.approved("photos", "Photos", webApp(t, "photos"))
	bob := p.member("bob@example.com", "Photos")
	p.answers(bob, notes, http.StatusForbidden)

	_, answer, err := p.call("POST", "/engine/register", map[string]any{"appId": "com.example.wiki", "pid": os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	capability, _ := answer["capability"].(string)
	people, err := p.ownerTier().People(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range people.Members {
		if one.Email == "bob@example.com" {
			p.grant(capability, one.AccountID, "Notes")
		}
	}
	p.answers(bob, notes, http.StatusOK)
	open := openStream(t, bob.Do, notes, nil)
	s.eventually("the notification is on the screen", func() error {
		shown, err := s.tool("dunstctl", "count", "displayed")
		if err == nil && shown == "0\n" {
			err = errors.New("none")
		}
		return err
	})
	s.shot("notification")
	pressed := time.Now()
	s.mustTool("dunstctl", "context") // lists the buttons and has Undo picked
	open.over(t, "Undo", pressed)
	shut(t, bob, notes)
}

// grant gives an app to somebody, as a program that registered does.
func (p *program) grant(capability, accountID, label string) {
	p.t.Helper()
	req, err := http.NewRequest("POST", "http://"+p.api+"/people/grant", strings.NewReader(fmt.Sprintf(`{"accountId":%q,"app":%q,"granted":true}`, accountID, label)))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Engine-Capability", capability)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		p.t.Fatalf("grant: %s", resp.Status)
	}
}

//go:build rig

package desktop

import (
	"testing"

	"porchlight/agent/agentapi"
)

const carla = "carla.nunes@example.org"

// newFullHouse is a desktop whose owner has apps, people and connected apps, all
// real: the people came by the links in their mails, the clients by consent.
func newFullHouse(t *testing.T, opts desk) *page {
	t.Helper()
	s := newSession(t, opts)
	s.alone()
	p := s.drive("127.0.0.1:8765")
	s.trayShows("No app is on", true)
	owner, ctx := p.owner(), t.Context()
	for _, app := range []struct {
		name, label string
		port        int
	}{{"notes", "Notes", 3000}, {"photos", "Photos", 2342}, {"home", "Home Assistant", 8123}} {
		p.python(app.port)
		p.publish(app.name, app.label, app.port)
		if _, err := owner.Approve(ctx, app.name); err != nil {
			t.Fatal(err)
		}
	}
	p.eventually("the apps can be handed out", func() error {
		_, err := owner.Invite(ctx, agentapi.InviteRequest{Email: carla, Apps: []string{"Notes", "Photos"}})
		return err
	})
	for email, labels := range map[string][]string{"lena@example.com": {"Photos"}, "tomas@example.net": {"Notes"}, guest: {"Notes", "Home Assistant"}} {
		if _, err := owner.Invite(ctx, agentapi.InviteRequest{Email: email, Apps: labels}); err != nil {
			t.Fatal(err)
		}
	}
	for _, who := range []struct{ email, also string }{{guest, p.address("home")}, {"tomas@example.net", ""}, {carla, p.address("photos")}} {
		visitor := p.browser()
		page, err := visitor.Open(ctx, p.mailedLink(who.email))
		if err == nil {
			_, err = visitor.Submit(ctx, page, "token", nil)
		}
		if err == nil && who.also != "" {
			_, err = visitor.Open(ctx, who.also)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	people, err := owner.People(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range people.Members {
		if one.Email == "tomas@example.net" {
			if _, err := owner.Remove(ctx, one.AccountID); err != nil {
				t.Fatal(err)
			}
		}
	}
	address, browser := p.address("notes"), p.browser()
	for _, name := range []string{"Pocket Notes", "Backup script"} {
		token := p.connectClientIn(browser, name)
		if name == "Pocket Notes" {
			p.asClient(token, address)
		}
	}
	p.python(8010)
	p.publish("paperless", "Paperless", 8010)
	p.trayShows("Paperless wants an address", true)
	p.notified("Paperless wants an address") // and off the screen
	return p
}

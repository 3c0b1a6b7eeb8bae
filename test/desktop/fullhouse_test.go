//go:build rig

package desktop

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
	"porchlight/test/visitor"
)

const carla = "carla.nunes@example.org"

// fullHouse is the page of newFullHouse, and two who can come by.
type fullHouse struct {
	*page
	carla *visitor.Visitor // signed in at Notes and Photos
	token string           // of Pocket Notes
}

// come has both open something until goAway is called: a large file that is taken
// no further than the buffers on its way.
func (p fullHouse) come() (goAway func()) {
	p.t.Helper()
	film := filepath.Join(p.dir, "services", "film")
	programs.Must(p.t, os.WriteFile(film, nil, 0o600))
	programs.Must(p.t, os.Truncate(film, 1<<30))
	var open []*http.Response
	for _, one := range []struct {
		who     *visitor.Visitor
		address string
		header  http.Header
	}{
		{p.carla, p.address("notes"), http.Header{}},
		{p.carla, p.address("photos"), http.Header{}},
		{p.guest(), p.address("notes"), http.Header{"Authorization": {"Bearer " + p.token}}},
	} {
		req := programs.Got(http.NewRequestWithContext(p.t.Context(), http.MethodGet, one.address+"/film", nil))(p.t)
		req.Header = one.header
		resp, err := one.who.Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			p.t.Fatalf("opening %s: %+v, %v", one.address, resp, err)
		}
		open = append(open, resp)
	}
	return func() {
		for _, resp := range open {
			resp.Body.Close()
		}
	}
}

// newFullHouse is a desktop whose owner has apps, people and connected apps, all
// real: the people came by the links in their mails, the clients by consent.
func newFullHouse(t *testing.T, opts desk) fullHouse {
	t.Helper()
	s := newSession(t, opts)
	p := s.atHome()
	s.trayShows("No app is on", true)
	owner, ctx := p.ownerTier(), t.Context()
	for _, app := range []struct {
		name, label string
		port        int
	}{{"notes", "Notes", 3000}, {"photos", "Photos", 2342}, {"home", "Home Assistant", 8123}} {
		p.python(app.port)
		p.publish(app.name, app.label, app.port)
		programs.Got(owner.Approve(ctx, app.name))(t)
	}
	p.eventually("the apps can be handed out", func() error {
		_, err := owner.Invite(ctx, agentapi.InviteRequest{Email: carla, Apps: []string{"Notes", "Photos"}})
		return err
	})
	for email, labels := range map[string][]string{"lena@example.com": {"Photos"}, "tomas@example.net": {"Notes"}, guest: {"Notes", "Home Assistant"}} {
		programs.Got(owner.Invite(ctx, agentapi.InviteRequest{Email: email, Apps: labels}))(t)
	}
	house := fullHouse{page: p}
	for _, who := range []struct{ email, also string }{{guest, p.address("home")}, {"tomas@example.net", ""}, {carla, p.address("photos")}} {
		visitor := p.guest()
		page, err := visitor.Open(ctx, p.mailed(who.email))
		if err == nil {
			_, err = visitor.Submit(ctx, page, "token", nil)
		}
		if err == nil && who.also != "" {
			_, err = visitor.Open(ctx, who.also)
		}
		programs.Must(t, err)
		if who.email == carla {
			house.carla = visitor
		}
	}
	programs.Got(owner.Remove(ctx, p.person("tomas@example.net").AccountID))(t)
	address, browser := p.address("notes"), p.guest()
	for _, name := range []string{"Pocket Notes", "Backup script"} {
		token := p.connectClientIn(browser, name)
		if name == "Pocket Notes" {
			p.asClient(token, address)
			house.token = token
		}
	}
	p.python(8010)
	p.publish("paperless", "Paperless", 8010)
	p.trayShows("Paperless wants an address", true)
	p.notified("Paperless wants an address") // and off the screen
	return house
}

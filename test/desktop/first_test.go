//go:build rig

package desktop

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
)

// Somebody starts it for the first time, and needs no terminal: the window opens by
// itself, though an app has asked already. Three presses later the browser is proven to
// trust this computer, and an app of theirs is open in it, signed in.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{first: true})
	notes := titled(t, "Notes")
	p := s.launchDriven()
	p.pageThere()
	p.named("h1", "Leave the porch light on")
	p.publish("early", "Early", webApp(t, "early"))
	s.trayShows("Early wants an address", true)
	p.named("h1", "Leave the porch light on") // whatever has asked meanwhile
	s.shot("first-start")

	presses := 0
	press := func(button string) {
		presses++
		p.pressButton(button)
	}
	press("Start")
	press("Trust it")
	if page := s.loads(s.dir+"/home", s.nextLink(0)); !strings.Contains(page, "This page is from this computer") {
		t.Fatalf("the browser shows %s", page)
	}
	p.named("h1", "Your browser trusts this computer")
	s.shot("first-proven")
	p.named("h1", "Pick your first app") // by itself
	press("Share Notes")
	p.named("h1", "Notes is on")
	if page := s.loads(s.dir+"/home", s.nextLink(1)); !strings.Contains(page, "Notes for owner") {
		t.Errorf("the owner's browser shows %s", page)
	}
	s.shot("first-done")
	t.Logf("the first app took %d presses", presses)
	if presses != 3 {
		t.Errorf("%d presses", presses)
	}
	p.is("notes", "live")
	var apps []agentapi.OwnerApp
	p.ask(&apps, "apps")
	for _, app := range apps {
		if app.Name == "notes" && (app.LocalPort != notes || app.Shared != nil) {
			t.Errorf("shared as %+v", app)
		}
	}
	p.pressButton("Done")
	p.named("h1", "Apps")
}

// A browser with a list of its own refuses, which the window says, with its name or
// without, and never that it trusts.
func TestFirstStartRefused(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{first: true})
	p := s.launchDriven()
	p.pageThere()
	p.pressButton("Start")
	p.pressButton("Trust it")
	elsewhere := filepath.Join(s.dir, "elsewhere") // a home without the list that was changed
	if err := os.Mkdir(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	if page := s.loads(elsewhere, s.nextLink(0)); strings.Contains(page, "This page is from this computer") {
		t.Fatalf("it was loaded: %s", page)
	}
	p.named("h1", "Your browser does not trust it yet")
	p.named(".badge", "Gives a warning")
	s.shot("first-refused")
	p.pressButton("Go on without")
	p.named("button", "Later")
}

// titled is the port of a program with a page that has a title.
func titled(t *testing.T, title string) (port int) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>%s</title>%s for %s", title, title, r.Header.Get("X-Service-Role"))
	}))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().(*net.TCPAddr).Port
}

// nextLink is what the browser was asked to open after so many others.
func (s *session) nextLink(after int) (link string) {
	s.t.Helper()
	s.eventually("the browser is opened", func() error {
		opened := s.opened()
		if len(opened) <= after {
			return os.ErrNotExist
		}
		link = linkIn(s.t, opened[after])
		return nil
	})
	return link
}

// loads has Chromium load an address, with the list of authorities of a home.
func (s *session) loads(home, address string) (page string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	profile, err := os.MkdirTemp(s.dir, "chromium")
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--user-data-dir="+profile, "--dump-dom", address)
	cmd.Env = append(s.env, "HOME="+home)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("chromium: %v", err)
	}
	return string(out)
}

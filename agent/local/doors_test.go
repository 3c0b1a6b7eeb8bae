package local

import (
	"net/http"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// Weakness: a page that says "closed" tells strangers which apps there are.
// Checked: in the dark every host, path and kind of request is answered alike,
// published or not, signed in or not, and nobody is sent to sign in.
func TestTheDarkTellsNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	programs.Got(s.house.owner.GoDark(t.Context()))(t)
	root := s.account().Host
	stranger := s.house.browser(t)
	var first string
	for _, name := range []string{"nothing.", "notes.", "photos.", "portal.", ""} {
		for _, path := range []string{"/", "/x?y", "/.porchlight/me", "/.porchlight/callback?state=x&code=y", "/.porchlight/open?token=x", "/.porchlight/sign-out"} {
			page := programs.Got(stranger.Open(t.Context(), "https://"+name+root+path))(t)
			body := strings.ReplaceAll(page.Body, name+strings.Split(root, ":")[0], "HOST")
			if first == "" {
				first = body
			}
			if page.Status != http.StatusServiceUnavailable || page.URL.Host != name+root || body != first {
				t.Errorf("%s%s: HTTP %d at %s:\n%s", name, path, page.Status, page.URL, body)
			}
		}
	}
	if !strings.Contains(first, "The owner of this computer has closed everything") || strings.Contains(first, "Notes") {
		t.Errorf("%s", first)
	}
	for _, c := range []client{s.browser, s.owner, s.remote} {
		if got := c.status(t); got != http.StatusServiceUnavailable {
			t.Errorf("signed in: HTTP %d", got)
		}
	}
	if _, err := s.house.owner.Open(t.Context(), "notes"); agentapi.CodeOf(err) != agentapi.CodeConflict {
		t.Errorf("a link in the dark: %v", err)
	}
}

// A paused app says so to those who may open it, and to nobody else; it is not
// on the launcher, and the others are not concerned.
func TestPausedPage(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	programs.Got(s.house.owner.Pause(t.Context(), "notes"))(t)
	page, err := s.bob.Open(t.Context(), "https://"+s.browser.host+"/")
	if err != nil || page.Status != http.StatusServiceUnavailable || !strings.Contains(page.Body, "Notes is paused") {
		t.Errorf("Bob sees %+v, %v", page, err)
	}
	if page, err = s.house.browser(t).Open(t.Context(), "https://"+s.browser.host+"/"); err != nil || strings.Contains(page.Body, "paused") || page.URL.Host == s.browser.host {
		t.Errorf("a stranger sees %+v, %v", page, err)
	}
	if page, err = s.bob.Open(t.Context(), "https://"+s.account().Host+"/"); err != nil || page.Status != http.StatusOK ||
		strings.Contains(page.Body, "Notes") || !strings.Contains(page.Body, "Photos") {
		t.Errorf("the launcher: %+v, %v", page, err)
	}
	if got := s.photos.status(t); got != http.StatusOK {
		t.Errorf("another app: HTTP %d", got)
	}
	if _, err := s.house.owner.Open(t.Context(), "notes"); agentapi.CodeOf(err) != agentapi.CodeConflict {
		t.Errorf("a link to a paused app: %v", err)
	}
	if pub, err := s.open.Publication(t.Context(), "notes"); err != nil || pub.Status != agentapi.StatusLive {
		t.Errorf("the app itself sees %+v, %v", pub, err)
	}
}

// What happened is told through the real way: a browser's visit, a remote
// client's with its name, and what a person did not do is not there.
func TestActivityOfVisits(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if _, err := s.house.owner.Grants(t.Context()); err != nil { // the name of the client is known then
		t.Fatal(err)
	}
	for range 3 {
		s.browser.status(t)
		s.remote.status(t)
	}
	lines := programs.Got(s.house.owner.Activity(t.Context(), 50))(t)
	got := map[string]int{}
	for _, l := range lines {
		got[l.Email+" "+l.App+" "+l.Kind+" "+l.By]++
	}
	maya := s.account().Email
	for _, want := range []string{bobEmail + " Notes opened ", bobEmail + " Photos opened ", maya + " Notes opened "} {
		if got[want] != 1 {
			t.Errorf("%q is there %d times", want, got[want])
		}
	}
	visits := 0
	for _, l := range lines {
		if l.Kind == agentapi.ActivityOpened || l.Kind == agentapi.ActivityClient {
			visits++
		}
	}
	if n := got[bobEmail+" Notes client Pocket Notes"]; n != 1 || visits != 4 {
		t.Errorf("the remote client is there %d times, of %d visits: %v", n, visits, got)
	}
}

//go:build rig

package desktop

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// An app that visitors cannot use is marked in the real window, and one press makes
// it work for them; a program comes in by a password that was made there, and its
// requests are listed. What visitors get is asked of visitors.
func TestWindowMendsApps(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	p := s.launchDriven()
	secure := httptest.NewTLSServer(tells("cluster"))
	t.Cleanup(secure.Close)
	p.publish("cluster", "Cluster", secure.Listener.Addr().(*net.TCPAddr).Port)
	p.trayShows("Cluster wants an address", true)
	p.openWindow()
	p.enter(p.named("button", "Approve"))
	p.is("cluster", "live")
	address := p.address("cluster")

	t.Run("an app that speaks HTTPS", func(t *testing.T) {
		p.named(".badge", "Speaks HTTPS")
		p.see(".tile.unlit")
		p.trayShows("Cluster: speaks HTTPS", true)
		p.shot("app-speaks-https")
		p.pressButton("Reach it over HTTPS: Cluster")
		p.named("button", "Open Cluster")
		p.see(".tile.lit")
		page, err := p.ownersBrowser("cluster").Open(t.Context(), address)
		if err != nil || page.Body != "cluster for owner" {
			t.Fatalf("a visitor gets %+v, %v", page, err)
		}
	})

	t.Run("an app that nobody listens for", func(t *testing.T) {
		listen := programs.FreeAddress(t)
		port, _ := strconv.Atoi(strings.TrimPrefix(listen, "127.0.0.1:"))
		p.publish("gone", "Gone", port)
		p.enter(p.named("button", "Approve"))
		p.is("gone", "live")
		p.named(".badge", "Not answering")
		p.pressButton("Gone")
		p.see(".health.wrong")
		p.shot("app-not-answering")
		listener := programs.Got(net.Listen("tcp", listen))(t)
		back := httptest.NewUnstartedServer(tells("gone"))
		_ = back.Listener.Close()
		back.Listener = listener
		back.Start()
		t.Cleanup(back.Close)
		p.pressButton("Try now")
		p.see(".health:not(.wrong)")
		page, err := p.ownersBrowser("gone").Open(t.Context(), p.address("gone"))
		if err != nil || page.Body != "gone for owner" {
			t.Fatalf("a visitor gets %+v, %v", page, err)
		}
		p.pressButton("Back to Apps")
	})

	t.Run("a password", func(t *testing.T) {
		p.pressButton("Cluster")
		p.pressButton("Connect a program…")
		p.write("What is it for?", "Backup")
		p.pressButton("Make password")
		user, password := p.text(p.named("code", "User name")), p.text(p.named("code", "Password"))
		p.shot("password")
		asks := func() string { return p.byPassword(user, password, address+"/backup?never=told") }
		if got := asks(); got != "200 cluster for owner" {
			t.Fatalf("with the password %s gets %q", user, got)
		}
		p.pressButton("Done")
		p.eventually("the password is gone from the page", func() error {
			var source string
			if err := webDriver("GET", p.session+"/source", nil, &source); err != nil || strings.Contains(source, password) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
		p.pressButton("Revoke the password Backup")
		p.press(p.named("dialog button", "Revoke"))
		p.eventually("it opens nothing any more", func() error {
			if got := asks(); !strings.HasPrefix(got, "401 ") {
				return errors.New(got)
			}
			return nil
		})
	})

	t.Run("what visitors asked", func(t *testing.T) {
		p.press(p.named("summary h2", "For developers"))
		p.named("code", "/backup")
		p.shot("requests")
		var source string
		if err := webDriver("GET", p.session+"/source", nil, &source); err != nil || strings.Contains(source, "never=told") {
			t.Errorf("the query is in the page (%v)", err)
		}
	})
}

// tells is an app that says who is there.
func tells(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s for %s", name, r.Header.Get("X-Service-Role"))
	})
}

// text is what an element says, also where it is scrolled out of sight.
func (p *page) text(css string) (text string) {
	p.t.Helper()
	err := webDriver("POST", p.session+"/execute/sync", map[string]any{"script": "return document.querySelector(arguments[0]).textContent", "args": []string{css}}, &text)
	if err != nil {
		p.t.Fatalf("the text of %s: %v", css, err)
	}
	return text
}

// byPassword opens an address as a program does that is no browser, and returns
// status and body, or why there was no answer.
func (p *program) byPassword(user, password, address string) string {
	p.t.Helper()
	return p.asProgram(address, func(r *http.Request) { r.SetBasicAuth(user, password) })
}

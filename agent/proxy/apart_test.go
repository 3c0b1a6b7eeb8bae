package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"porchlight/agent/engine"
)

// Weakness: apps of one computer, and computers of one domain, are one site, and
// a browser sends a visitor's cookie with whatever their pages load.
// Attack: a sibling's page includes a script that holds data, loads a picture from
// an address that deletes, shows the app in a frame.
// Checked: by cookie only the app's own pages load from it; others open it in a
// tab at most; a program without such a header is not a browser.
func TestPagesOfOthersLoadNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.app("photos", hello)
	const sibling = "https://photos." + rootHost
	b := r.signedIn("notes", bobID, true)
	home := r.browser(true)
	home.signIn("https://"+rootHost+"/", bobID)
	for _, c := range []struct {
		what, method                string
		site, mode, dest            string
		more                        []string
		plain, allowed, launcherToo int
	}{
		{"own script", "GET", "same-origin", "no-cors", "script", nil, 200, 200, 200},
		{"own frame", "GET", "same-origin", "navigate", "iframe", nil, 200, 200, 200},
		{"own service worker", "GET", "same-origin", "same-origin", "serviceworker", nil, 200, 200, 200},
		{"own form", "POST", "same-origin", "navigate", "document", []string{"Origin", origin}, 200, 200, 0},
		{"own fetch after a detour, which Origin tells", "GET", "cross-site", "cors", "empty", []string{"Origin", origin}, 200, 200, 0},
		{"own frame after a detour, which Referer tells", "GET", "cross-site", "navigate", "iframe", []string{"Referer", origin + "/app?a=1"}, 200, 200, 0},
		{"own picture after a detour by a sibling", "GET", "same-site", "no-cors", "image", []string{"Referer", origin + "/"}, 200, 200, 0},
		{"own post after a detour, Referer or not", "POST", "cross-site", "navigate", "iframe", []string{"Referer", origin + "/"}, 403, 403, 0},
		{"address bar", "GET", "none", "navigate", "document", nil, 200, 200, 200},
		{"no browser", "GET", "", "", "", nil, 200, 200, 200},
		{"link of a sibling", "GET", "same-site", "navigate", "document", nil, 200, 200, 200},
		{"link in a mail", "GET", "cross-site", "navigate", "document", nil, 200, 200, 200},
		{"link to an app with a service worker", "GET", "cross-site", "navigate", "empty", nil, 200, 200, 200},
		{"look at a link", "HEAD", "cross-site", "navigate", "document", nil, 200, 200, 200},

		{"a sibling's script", "GET", "same-site", "no-cors", "script", []string{"Referer", sibling + "/"}, 403, 200, 403},
		{"a sibling's picture", "GET", "same-site", "no-cors", "image", []string{"Referer", sibling + "/"}, 403, 200, 403},
		{"a sibling's frame", "GET", "same-site", "navigate", "iframe", []string{"Referer", sibling + "/"}, 403, 200, 403},
		{"a sibling's frame in a frameset", "GET", "same-site", "navigate", "frame", []string{"Referer", sibling + "/"}, 403, 200, 403},
		{"a sibling's post as a worker would pass it on", "POST", "same-site", "navigate", "empty", []string{"Origin", sibling}, 403, 200, 0},
		{"a sibling's object", "GET", "same-site", "navigate", "object", []string{"Referer", sibling + "/"}, 403, 200, 403},
		{"a sibling's fetch", "GET", "same-site", "cors", "empty", []string{"Origin", sibling}, 403, 200, 403},
		{"a sibling's form", "POST", "same-site", "navigate", "document", []string{"Origin", sibling}, 403, 200, 0},
		{"a form without Origin", "POST", "same-site", "navigate", "document", []string{"Referer", sibling + "/"}, 403, 403, 0},
		{"a sibling that hides", "GET", "same-site", "no-cors", "image", nil, 403, 403, 403},
		{"another tenant's picture", "GET", "same-site", "no-cors", "image", []string{"Referer", "https://photos.eve.porch.test/"}, 403, 403, 403},
		{"another site's frame", "GET", "cross-site", "navigate", "iframe", []string{"Referer", "https://evil.test/"}, 403, 403, 403},
		{"another site's fetch", "GET", "cross-site", "cors", "empty", []string{"Origin", "https://evil.test"}, 403, 403, 403},
		{"a prefetch as no page", "GET", "same-site", "no-cors", "empty", []string{"Sec-Purpose", "prefetch"}, 403, 403, 403},
	} {
		header := c.more
		for i, name := range []string{"Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest"} {
			if value := []string{c.site, c.mode, c.dest}[i]; value != "" {
				header = append(header[:len(header):len(header)], name, value)
			}
		}
		for allowed, want := range map[bool]int{false: c.plain, true: c.allowed} {
			r.change("notes", func(a *engine.App) { a.Options.AllowCrossOrigin = allowed })
			b.fetches(want, fmt.Sprintf("%s, allowed=%v", c.what, allowed), c.method, origin+"/", header...)
		}
		if c.launcherToo != 0 {
			home.fetches(c.launcherToo, fmt.Sprintf("%s, the launcher", c.what), c.method, "https://"+rootHost+"/", header...)
		}
	}
}

// An app's answer says who may frame and load it, unless the app does.
func TestAnswersAreKeptApart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var send http.Header
	r.app("notes", func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range send {
			w.Header()[name] = values
		}
	})
	b := r.signedIn("notes", bobID, true)
	const csp, corp, xfo, ours = "Content-Security-Policy", "Cross-Origin-Resource-Policy", "X-Frame-Options", "frame-ancestors 'self'"
	for _, c := range []struct {
		send      http.Header
		csp, corp string
	}{
		{nil, ours, "same-origin"},
		{http.Header{csp: {"default-src 'self'"}}, "default-src 'self'|" + ours, "same-origin"},
		{http.Header{csp: {"default-src 'self'", "img-src *; Frame-Ancestors https://x.test"}}, "default-src 'self'|img-src *; Frame-Ancestors https://x.test", "same-origin"},
		{http.Header{csp: {"img-src *, frame-ancestors *"}}, "img-src *, frame-ancestors *", "same-origin"},
		{http.Header{csp: {"img-src frame-ancestors"}}, "img-src frame-ancestors|" + ours, "same-origin"},
		{http.Header{csp + "-Report-Only": {"frame-ancestors *"}}, ours, "same-origin"},
		{http.Header{xfo: {"DENY"}}, "", "same-origin"},
		{http.Header{corp: {"cross-origin"}}, ours, "cross-origin"},
	} {
		send = c.send
		for _, method := range []string{"GET", "POST"} { // both ways to the app
			res, _ := b.fetch(method, origin+"/")
			if got := strings.Join(res.Header[csp], "|"); got != c.csp {
				t.Errorf("%s, the app sends %v: %s %q, want %q", method, c.send, csp, got, c.csp)
			}
			if got := strings.Join(res.Header[corp], "|"); got != c.corp {
				t.Errorf("%s, the app sends %v: %s %q, want %q", method, c.send, corp, got, c.corp)
			}
		}
	}
	send = nil
	r.change("notes", func(a *engine.App) { a.Options.AllowCrossOrigin = true })
	if res, _ := b.fetch("GET", origin+"/"); len(res.Header[csp]) != 0 || len(res.Header[corp]) != 0 {
		t.Errorf("an app whose siblings may show it: %v", res.Header)
	}
}

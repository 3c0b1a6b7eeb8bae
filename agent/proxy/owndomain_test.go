package proxy_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/identity"
	"porchlight/agent/proxy"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// Weakness: an access token is worth as much at a name whose records are gone, which is
// somebody else's by now. Checked: it is taken while the name is proven, or cannot be looked up,
// and at no other name; and what signs who is there names the app's own address each time.
func TestAccessTokensAtAnOwnDomain(t *testing.T) {
	t.Parallel()
	const own = "diary.porch.test"
	r := newBearerRig(t, func(c *proxy.Config) {
		db := programs.Got(store.Open(t.TempDir()))(t)
		t.Cleanup(func() { db.Close() })
		c.Identity = identity.New(db, c.Now)
	})
	rec := newRecorder(t)
	r.publish("notes", rec.port)
	r.change("notes", func(a *engine.App) { a.Options.IdentityToken = true })
	soon := r.now().Add(time.Hour)
	for _, c := range []struct {
		domain controlapi.Domain
		status int
	}{
		{controlapi.Domain{State: controlapi.DomainProven}, http.StatusOK},
		{controlapi.Domain{State: controlapi.DomainUnsure, Until: soon}, http.StatusOK},
		{controlapi.Domain{State: controlapi.DomainGone, Why: controlapi.DomainNoText, Until: soon}, http.StatusUnauthorized},
		{controlapi.Domain{State: controlapi.DomainWaiting}, http.StatusNotFound},
	} {
		c.domain.Name, c.domain.AppID = own, "id-notes"
		r.domains = []controlapi.Domain{c.domain}
		r.sync()
		before := len(rec.requests())
		b := r.browser(false)
		req := b.request("GET", "https://"+own+"/", nil)
		req.Header.Set("Authorization", "Bearer "+r.token(bobID))
		res, _ := b.read(req)
		told := rec.requests()[before:]
		if res.StatusCode != c.status || len(told) > 0 != (c.status == http.StatusOK) {
			t.Errorf("%s: %d, and the app heard %d requests", c.domain.State, res.StatusCode, len(told))
		}
		for _, raw := range told {
			if claims, err := r.verified(sent(t, raw)[0]); err != nil || claims["aud"] != origin {
				t.Errorf("%s: the app is told of %v, %v", c.domain.State, claims, err)
			}
		}
	}
}

const (
	diary    = "https://diary.porch.test"    // of the app notes
	pictures = "https://pictures.porch.test" // of the app photos
)

// ownDomains says how it stands with the two.
func (r *rig) ownDomains(notes, photos controlapi.DomainState) {
	r.domains = nil
	for name, state := range map[string]controlapi.DomainState{"diary.porch.test": notes, "pictures.porch.test": photos} {
		d := controlapi.Domain{Name: name, AppID: "id-notes", State: state, Until: r.now().Add(time.Hour)}
		if name == "pictures.porch.test" {
			d.AppID = "id-photos"
		}
		if state != "" {
			r.domains = append(r.domains, d)
		}
	}
	r.sync()
}

// Weakness: an own domain is another origin of an app, and a page of the app's own host, of a
// sibling or of anybody passes for one of its own. Checked: with a session of the own domain its
// own pages alone write, open WebSockets, fetch, ask who is there and sign out; and pages of the
// own domain do none of that at the app's own host. What the owner allows siblings they may at an
// own domain, too, and at own domains of theirs, for as long as these are proven.
func TestOriginsAtAnOwnDomain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.app("photos", hello)
	const photos = "https://photos." + rootHost
	r.ownDomains(controlapi.DomainProven, controlapi.DomainProven)
	b := r.browser(false)
	b.signIn(diary+"/", bobID)
	home := r.signedIn("notes", bobID, false)
	ways := map[string][]string{
		"writing": {"POST", "/"}, "a WebSocket": {"GET", "/", "Connection", "Upgrade", "Upgrade", "websocket", "Sec-Websocket-Version", "13", "Sec-Websocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
		"a fetch":             {"GET", "/", "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"},
		"asking who is there": {"GET", "/.porchlight/me"},
	}
	asks := func(b *browser, at, from string, want int, which ...string) {
		t.Helper()
		for what, way := range ways {
			if len(which) == 0 || slices.Contains(which, what) {
				b.fetches(want, what+" at "+at+" from "+from, way[0], at+way[1], append(slices.Clone(way[2:]), "Origin", from)...)
			}
		}
	}
	others := []string{origin, "https://" + rootHost, photos, pictures, "https://evil.test", "null", diary + ":444", "http://diary.porch.test"}
	asks(b, diary, diary, 200)
	for _, from := range others {
		asks(b, diary, from, 403)
		b.fetches(403, "signing out from "+from, "POST", diary+"/.porchlight/sign-out", "Origin", from)
	}
	asks(home, origin, origin, 200)
	for _, from := range []string{diary, pictures} {
		asks(home, origin, from, 403)
	}

	siblings := []string{"writing", "a WebSocket", "a fetch"}
	allowed := func(from string) bool {
		res, _ := b.fetch("OPTIONS", diary+"/", "Origin", from, "Access-Control-Request-Method", "PUT")
		return res.Header.Get("Access-Control-Allow-Credentials") == "true" && res.Header.Get("Access-Control-Allow-Origin") == from
	}
	r.change("notes", func(a *engine.App) { a.Options.AllowCrossOrigin = true })
	for _, at := range []controlapi.DomainState{controlapi.DomainProven, controlapi.DomainUnsure, controlapi.DomainGone, controlapi.DomainWaiting, ""} {
		r.ownDomains(controlapi.DomainProven, at)
		want := map[bool]int{true: 200, false: 403}[at == controlapi.DomainProven || at == controlapi.DomainUnsure]
		asks(b, diary, pictures, want, siblings...)
		asks(home, origin, pictures, want, siblings...)
		if allowed(pictures) != (want == 200) {
			t.Errorf("pictures is %q: a browser is told %v", at, allowed(pictures))
		}
	}
	asks(b, diary, photos, 200, siblings...)
	if !allowed(photos) || allowed("https://evil.test") || allowed("http://photos."+rootHost) {
		t.Error("of others a browser is told something else than what is so")
	}
	for _, from := range []string{"https://evil.test", "https://gone." + rootHost, "http://pictures.porch.test", photos + ":444"} {
		asks(b, diary, from, 403, siblings...)
	}
	asks(b, diary, photos, 403, "asking who is there")
	r.ownDomains(controlapi.DomainGone, controlapi.DomainProven)
	if allowed(photos) {
		t.Error("at a name whose records are gone a sibling is let in")
	}
	b.fetches(200, "signing out", "POST", diary+"/.porchlight/sign-out", "Origin", diary)
	b.fetches(401, "signed out", "GET", diary+"/")
	home.fetches(200, "the app's own host", "GET", origin+"/")
}

// The owner's choices for an app hold at its own domain, and what names the app in them is that
// address, whichever one a visitor came by.
func TestOptionsAtAnOwnDomain(t *testing.T) {
	t.Parallel()
	r, rec := newRig(t), newRecorder(t)
	r.publish("notes", rec.port)
	r.ownDomains(controlapi.DomainProven, "")
	r.change("notes", func(a *engine.App) {
		a.Options = agentapi.AppOptions{Forwarded: true, LocalhostHost: true, IdentityHeader: "X-Remote-User", IdentityValue: agentapi.IdentityEmail}
	})
	b := r.browser(false)
	b.signIn(diary+"/", bobID)
	b.fetches(200, "writing", "POST", diary+"/a", "Origin", diary, "Referer", diary+"/b", "X-Remote-User", "forged", "X-Forwarded-Host", "evil.test")
	all := rec.requests()
	raw, local := all[len(all)-1], fmt.Sprintf("localhost:%d", rec.port)
	for _, line := range []string{"Host: " + local, "Origin: http://" + local, "Referer: http://" + local + "/b", "X-Forwarded-Host: diary.porch.test", "X-Forwarded-Proto: https", "X-Remote-User: bob@example.com"} {
		if strings.Count(raw, "\r\n"+line+"\r\n") != 1 {
			t.Errorf("%q is not there once:\n%s", line, raw)
		}
	}
	if strings.Contains(raw, "forged") || strings.Contains(raw, "evil") {
		t.Errorf("the visitor's claims reached the app:\n%s", raw)
	}
	r.app("notes", func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, "http://"+req.Host+"/there", http.StatusFound)
	})
	r.change("notes", func(a *engine.App) { a.Options.LocalhostHost = true })
	if res, _ := b.fetch("GET", diary+"/"); res.Header.Get("Location") != diary+"/there" {
		t.Errorf("the app's own address becomes %q", res.Header.Get("Location"))
	}
	// Who did not sign in with a passkey has to, at the own domain as well, and comes back to it.
	r.change("notes", func(a *engine.App) { a.Options = agentapi.AppOptions{OnlyPasskey: true} })
	b.gets(303, "a session by mail", diary+"/deep")
	r.proof = controlapi.ProofPasskey
	r.app("notes", hello)
	r.change("notes", func(a *engine.App) { a.Options.OnlyPasskey = true })
	if end := b.signIn(diary+"/deep", bobID); end != diary+"/deep" {
		t.Errorf("came back to %q", end)
	}
	b.gets(200, "a session by passkey", diary+"/deep")
}

// An own domain opens one app: the launcher is at the computer's own address, is led to from
// there, and lists apps by theirs.
func TestLauncherAndAnOwnDomain(t *testing.T) {
	t.Parallel()
	r := newBearerRig(t)
	r.ownDomains(controlapi.DomainProven, "")
	b := r.browser(false)
	b.signIn(diary+"/", bobID)
	for _, path := range []string{"/.porchlight/manifest.webmanifest", "/.porchlight/launcher.js", "/.porchlight/open?token=x"} {
		b.gets(404, path, diary+path)
	}
	req := b.request("GET", diary+"/.porchlight/apps", nil, "Authorization", "Bearer "+r.token(bobID))
	if res, body := b.read(req); res.StatusCode != 200 || !strings.Contains(body, `"`+origin+`"`) || strings.Contains(body, "diary") {
		t.Errorf("an access token is told %s %s", res.Status, body)
	}
	home := r.browser(false)
	home.signIn("https://"+rootHost+"/", bobID)
	if res, body := home.get("https://" + rootHost + "/"); res.StatusCode != 200 || !strings.Contains(body, `href="`+origin+`/"`) || strings.Contains(body, "diary") {
		t.Errorf("the launcher: %s\n%s", res.Status, body)
	}
	r.setPeople(r.person(bobID, func(p *controlapi.Person) { p.Apps = nil })...)
	if res, body := b.get(diary + "/"); res.StatusCode != 403 || !strings.Contains(body, `"https://`+rootHost+`/"`) || !strings.Contains(body, "diary.porch.test") {
		t.Errorf("who may not open it is not led to the launcher: %s\n%s", res.Status, body)
	}
}

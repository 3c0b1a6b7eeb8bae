package proxy_test

import (
	"io"
	"maps"
	"net/http"
	"testing"
	"time"

	"porchlight/agent/engine"
	"porchlight/control/controlapi"
)

const mark = cookie + "-a"

// A browser clears what a former app of the name left in it when it shows that it
// was with that app, and at no other time: what the app of now keeps there stays
// through updates, signing out, and whatever cookies are lost.
func TestClearFormer(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		r := newRig(t)
		r.app("diary", hello)
		r.setPeople(r.person(bobID, func(p *controlapi.Person) { p.Apps = []string{"id-notes", "id-new", "id-diary"} })...)
		const notes = origin
		b := r.signedIn("notes", bobID, http2)
		with := func(names ...string) *browser {
			other := r.browser(http2)
			for _, name := range names {
				other.cookies[name] = b.cookies[name]
			}
			return other
		}
		cleared := func(what string, b *browser, want bool) {
			t.Helper()
			res, _ := b.get(notes + "/")
			if got := res.Header.Get("Clear-Site-Data"); (got == `"cache", "storage"`) != want || !want && got != "" {
				t.Errorf("http2=%v: %s: %s %q", http2, what, res.Status, got)
			}
		}
		old := with(cookie) // as one of a version that set no mark
		if b.cookies[mark] == "" || len(with(mark).cookies[mark]) != 22 {
			t.Fatalf("http2=%v: no mark among %v", http2, maps.Clone(b.cookies))
		}
		cleared("the first app", b, false)
		cleared("the first app, without a mark", old, false)
		cleared("the first app, without cookies", with(), false)

		// Nothing is known of who had the name before: so after an upgrade.
		r.change("notes", func(app *engine.App) { app.ID = "id-new" })
		cleared("another app, none known before", with(cookie, mark), false)
		r.change("notes", func(app *engine.App) { app.Formers = []string{"id-older", "id-notes"} })

		cleared("a session of the former app", with(cookie), true)
		signedOut := with(mark)
		cleared("signed out of the former app", signedOut, true)
		cleared("signed out of the former app, again", signedOut, false)
		cleared("a browser that was never here", with(), false)
		forged := with()
		forged.cookies[mark] = "AAAAAAAAAAAAAAAAAAAAAA"
		cleared("a mark that is nobody's", forged, false)
		sibling := r.signedIn("diary", bobID, http2)
		tossed := r.browser(http2)
		maps.Copy(tossed.cookies, sibling.cookies)
		cleared("cookies of a neighbour", tossed, false)

		// A script is told as well: a service worker may leave nothing else.
		res, _ := with(cookie).fetch("GET", notes+"/sw.js", "Service-Worker", "script", "Sec-Fetch-Mode", "same-origin")
		if res.StatusCode != 401 || res.Header.Get("Clear-Site-Data") != `"cache", "storage"` {
			t.Errorf("http2=%v: a worker's update: %s %v", http2, res.Status, res.Header)
		}

		// The new app's own data stays.
		b.signIn(notes+"/", bobID)
		cleared("the new app", b, false)
		cleared("the new app, its mark lost", with(cookie), false)
		cleared("the new app, its session lost", with(mark), false)
		cleared("the new app, both lost", with(), false)
		r.change("notes", func(app *engine.App) { app.Label = "Better notes" })
		cleared("an update", b, false)
		req := b.request("POST", notes+"/.porchlight/sign-out", nil, "Origin", notes, "Accept", "text/html")
		res = b.do(req)
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if _, has := b.cookies[cookie]; has || res.StatusCode != http.StatusOK || res.Header.Get("Clear-Site-Data") != "" || b.cookies[mark] == "" {
			t.Errorf("http2=%v: signing out: %s %v", http2, res.Status, res.Header)
		}
		cleared("signed out of the new app", b, false)
		b.signIn(notes+"/", bobID)
		cleared("signed in to it again", b, false)
	}
}

// Weakness: looking whose session a browser has counted as its use, so the request
// after it was none to set the cookies again for, and they ran out in the browser of
// somebody who came every day.
// Checked: an hour later they are set again, the mark that was lost too.
func TestClearFormerKeepsSessionsAlive(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.change("notes", func(app *engine.App) { app.Formers = []string{"id-older"} })
	b := r.signedIn("notes", bobID, false)
	delete(b.cookies, mark)
	r.advance(61 * time.Minute)
	res, _ := b.get(origin + "/")
	set := map[string]bool{}
	for _, c := range res.Cookies() {
		set[c.Name] = true
	}
	if res.StatusCode != http.StatusOK || !set[cookie] || !set[mark] || res.Header.Get("Clear-Site-Data") != "" {
		t.Errorf("%s %v", res.Status, res.Header)
	}
}

// A computer's name can have been another account's: its Porchlight had another
// instance, and left cookies of that at the hosts of its apps.
func TestClearFormerOwner(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const notes = origin
	visit := func(former bool, cookies map[string]string) (cleared bool, b *browser) {
		t.Helper()
		r.access.SetSnapshot(controlapi.Snapshot{
			Version: "v", Computer: controlapi.Computer{ID: "computer", Name: "maya", Host: rootHost, Former: former}, People: r.people,
		})
		b = r.browser(true)
		maps.Copy(b.cookies, cookies)
		res, _ := b.get(notes + "/")
		got := res.Header.Get("Clear-Site-Data")
		if got != "" && got != `"cache", "storage"` {
			t.Errorf("%v: clears %s", cookies, got)
		}
		return got != "", b
	}
	const theirs = "__Host-porchlight-0badcafe"
	for _, tt := range []struct {
		former bool
		cookie string
		clears bool
	}{
		{true, theirs, true}, {true, theirs + "-a", true},
		{false, theirs, false}, {false, theirs + "-a", false},
		{true, theirs + "-t", false}, {true, theirs + "-n-01234567", false},
		{true, cookie, false}, {true, mark, false}, {true, "theme", false},
		{true, "__Host-porchlight-", false}, {true, "__Secure-porchlight-0badcafe", false},
	} {
		if cleared, _ := visit(tt.former, map[string]string{tt.cookie: "x"}); cleared != tt.clears {
			t.Errorf("former %v, %s: cleared %v", tt.former, tt.cookie, cleared)
		}
	}
	if cleared, _ := visit(true, nil); cleared {
		t.Error("a browser that was never here is cleared")
	}
	_, b := visit(true, map[string]string{theirs: "x"})
	if cleared, _ := visit(true, b.cookies); cleared {
		t.Error("a browser is cleared a second time")
	}
}

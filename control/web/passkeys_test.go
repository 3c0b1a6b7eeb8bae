package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"porchlight/control"
	"porchlight/test/authenticator"
)

// begun has a ceremony begun, as the script does: what the browser is asked.
func (b *browser) begun(path string) []byte {
	b.t.Helper()
	return []byte(b.post(path+"/begin").want(b.t, http.StatusOK).body)
}

// passkey adds a new one to the account of this browser.
func (b *browser) passkey() *authenticator.Passkey {
	b.t.Helper()
	p := authenticator.New(b.t, authURL, "control.localhost")
	if to := b.post("/account/passkeys", "answer", string(p.Make(b.t, b.begun("/account/passkeys")))).to(b.t); to != "/account" {
		b.t.Errorf("led to %s", to)
	}
	return p
}

// mailedIn is a browser that a person's nth mail signed in.
func (r *rig) mailedIn(email string, nth int) *browser {
	r.t.Helper()
	b := r.browser()
	b.post("/signin", "email", email).to(r.t)
	b.post("/signin/link", "token", tokenOf(r.t, r.mails(email, nth))).to(r.t)
	return b
}

// touch signs this browser in.
func (b *browser) touch(p *authenticator.Passkey, returnTo string) answer {
	b.t.Helper()
	return b.post("/signin/passkey", "answer", string(p.Use(b.t, b.begun("/signin/passkey"))), "return", returnTo)
}

var passkeyChange = regexp.MustCompile(`href="(/account/passkeys/change\?passkey=[0-9a-f]{64})" aria-label="Change the passkey ([^"]+)"`)

// The way of a passkey: offered after the first link where the browser makes some, added on
// the way, one touch instead of the next mail, to where somebody was going; named anew and
// removed at the account, after which it opens nothing.
func TestPasskeyInsteadOfAMail(t *testing.T) {
	t.Parallel()
	for kind, newRig := range stores {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			b := r.browser()
			b.post("/signin", "email", "maya@example.com", "return", visitPath()).to(t)
			token := tokenOf(t, r.mails("maya@example.com", 1))
			offer := b.post("/signin/link", "token", token, "passkey", "yes").to(t)
			if offer != "/account/passkeys/new?return="+url.QueryEscape(visitPath()) {
				t.Fatalf("led to %s", offer)
			}
			page := b.get(offer).want(t, http.StatusOK)
			goldenPage(t, "passkey", page.body)
			if csp := page.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "; script-src "+authURL+passkeysPath+"; connect-src "+authURL+"/account/passkeys/begin; form-action 'self' https://notes.maya.localhost:8443;") {
				t.Error(csp)
			}
			p := authenticator.New(t, authURL, "control.localhost")
			added := b.post("/account/passkeys", "answer", string(p.Make(t, b.begun("/account/passkeys"))), "return", visitPath())
			if to := unescaped(added.to(t)); to != visitPath() {
				t.Errorf("led to %s", to)
			}
			if m := r.mailsNamed("A passkey was added to your account", "maya@example.com", 1); !strings.Contains(m.Text, authURL+"/account") || !strings.Contains(m.Text, "It came from 127.0.0.1.") {
				t.Error(m.Text)
			}
			b.post("/signout").to(t)
			if to := b.touch(p, visitPath()).to(t); to != visitPath() {
				t.Errorf("led to %s", to)
			}
			if page := b.get("/signin?return=" + url.QueryEscape("/account/passkeys/new")); page.to(t) != "/account/passkeys/new" {
				t.Error("a touch is no fresh sign-in")
			}
			account := b.get("/account").want(t, http.StatusOK)
			found := passkeyChange.FindStringSubmatch(account.body)
			if found == nil || !strings.Contains(account.body, "used on") {
				t.Fatal(account.body)
			}
			change := found[1]
			id := strings.TrimPrefix(change, "/account/passkeys/change?passkey=")
			b.get(change).want(t, http.StatusOK)
			if again := b.post("/account/passkeys/change", "passkey", id, "name", "<b>\u202e").want(t, http.StatusBadRequest); !strings.Contains(again.body, "1 to 60 visible characters") {
				t.Error(again.body)
			}
			b.post("/account/passkeys/change", "passkey", id, "name", "Blue <key>").to(t)
			if found := passkeyChange.FindStringSubmatch(b.get("/account").body); found == nil || unescaped(found[2]) != "Blue <key>" {
				t.Errorf("it is called %v", found)
			}
			b.post("/account/passkeys/change", "passkey", id, "remove", "yes").to(t)
			b.get(change).want(t, http.StatusNotFound)
			refused := r.browser().touch(p, "").want(t, http.StatusForbidden)
			if !strings.Contains(refused.body, "That passkey was not taken") || len(refused.Cookies()) > 0 {
				t.Errorf("%v %s", refused.Header, refused.body)
			}
		})
	}
}

// An app that asks for a passkey leads who has none to make one, and on: a guest whose
// invitation has proven their address, without another mail.
func TestAppAsksForAPasskey(t *testing.T) {
	t.Parallel()
	r := peopleRig(t)
	r.invite("app1")
	b := r.browser()
	b.accept(1)
	asks := visitPath("proof", "passkey")
	if to := b.get(visitPath()).to(t); !strings.HasPrefix(to, callback+"?code=") {
		t.Fatalf("where all will do they are led to %s", to)
	}
	makes := b.get(asks).to(t)
	if want := "/account/passkeys/new?return=" + url.QueryEscape(asks); makes != want {
		t.Fatalf("led to %s, want %s", makes, want)
	}
	goldenPage(t, "passkey-asked", b.get(makes).want(t, http.StatusOK).body)
	p := authenticator.New(t, authURL, "control.localhost")
	to := unescaped(b.post("/account/passkeys", "answer", string(p.Make(t, b.begun("/account/passkeys"))), "return", asks).to(t))
	if to != asks {
		t.Fatalf("led to %s", to)
	}
	if to := b.get(asks).to(t); !strings.HasPrefix(to, callback+"?code=") {
		t.Errorf("with a passkey they are led to %s", to)
	}
	if to := b.get("/account").to(t); !strings.HasPrefix(to, "/signin") {
		t.Errorf("an invitation's session leads to %s", to)
	} else if page := b.get(to).want(t, http.StatusOK); !strings.Contains(page.body, "Your passkey was made by an invitation") || !strings.Contains(page.body, `value="bob@example.com"`) {
		t.Errorf("nothing says what to do:\n%s", page.body)
	}

	// Whoever has one, and signed in by a mail, is asked for it.
	mailed := r.mailedIn("bob@example.com", 1)
	signIn := mailed.get(asks).to(t)
	if want := "/signin?return=" + url.QueryEscape(asks); signIn != want {
		t.Fatalf("led to %s, want %s", signIn, want)
	}
	page := mailed.get(signIn).want(t, http.StatusOK)
	goldenPage(t, "passkey-use", page.body)
	if csp := page.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "; connect-src "+authURL+"/signin/passkey/begin; form-action 'self' https://notes.maya.localhost:8443;") {
		t.Error(csp)
	}
	if to := unescaped(mailed.touch(p, asks).to(t)); to != asks {
		t.Errorf("led to %s", to)
	}
	if to := mailed.get(asks).to(t); !strings.HasPrefix(to, callback+"?code=") {
		t.Errorf("after a touch they are led to %s", to)
	}
	// Where an account at a provider will do as well, the page has all there is.
	other := r.mailedIn("bob@example.com", 2)
	if page := other.get(other.get(visitPath("proof", "passkey,provider")).to(t)).want(t, http.StatusOK); !strings.Contains(page.body, "Send me a link") {
		t.Error(page.body)
	}
}

// Weakness: whoever reads the mails of somebody with a passkey changes their account.
// Checked: what gives power asks for the passkey, comes back, and goes on.
func TestAccountAsksForThePasskey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.mailedIn("maya@example.com", 1).passkey()
	for i, path := range []string{"/account/passkeys/new", "/account/passwords", "/device", "/account/passkeys/change?passkey=" + strings.Repeat("0", 64)} {
		b := r.mailedIn("maya@example.com", i+2)
		to := b.get(path).to(t)
		if want := "/signin?" + (url.Values{"return": {path}}).Encode(); to != want {
			t.Fatalf("%s leads to %s", path, to)
		}
		page := b.get(to).want(t, http.StatusOK)
		if !strings.Contains(page.body, "Use your passkey") || strings.Contains(page.body, "Send me a link") {
			t.Error(page.body)
		}
		if to := unescaped(b.touch(p, path).to(t)); to != path {
			t.Errorf("a touch leads to %s, want %s", to, path)
		}
		if got := b.get(path); got.StatusCode != http.StatusOK && got.StatusCode != http.StatusNotFound {
			t.Errorf("%s after a touch: %s", path, got.Status)
		}
	}
	b := r.mailedIn("maya@example.com", 6)
	for path, fields := range map[string][]string{
		"/account/passkeys": {"answer", "{}"}, "/account/passkeys/begin": nil, "/account/passkeys/change": {"passkey", strings.Repeat("0", 64), "remove", "yes"},
		"/account/passwords": {"computer", "maya", "app", "app1", "name", "x"}, "/device": {"code", "BCDF-GHJK", "decision", "allow", "name", "loft"},
	} {
		before := r.rows()
		if to := b.post(path, fields...).to(t); !strings.HasPrefix(to, "/signin?return=") {
			t.Errorf("%s leads to %s", path, to)
		}
		r.unchanged(path, before)
	}
	// What only takes away asks nobody.
	b.post("/account/sessions/end", "others", "yes").to(t)
	b.post("/account/passwords/revoke", "all", "yes").to(t)
}

// Nobody is offered a passkey whose browser makes none, who has one, or who was here before
// in this browser; nobody's link is lost by it.
func TestPasskeyIsOfferedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser()
	in := func(b *browser, nth int, fields ...string) string {
		t.Helper()
		b.post("/signin", "email", "maya@example.com").to(t)
		return b.post("/signin/link", append([]string{"token", tokenOf(t, r.mails("maya@example.com", nth))}, fields...)...).to(t)
	}
	if to := in(r.browser(), 1); to != "/account" {
		t.Errorf("a browser that makes none is led to %s", to)
	}
	if to := in(b, 2, "passkey", "yes"); to != "/account/passkeys/new" {
		t.Errorf("the first time leads to %s", to)
	}
	if to := in(b, 3, "passkey", "yes"); to != "/account" {
		t.Errorf("the second time leads to %s", to)
	}
	b.passkey()
	if to := in(r.browser(), 4, "passkey", "yes"); to != "/account" {
		t.Errorf("who has one is led to %s", to)
	}
}

// Adding and removing ask who has not just signed in to do so, and come back; so does who
// signed in by an invitation alone.
func TestPasskeysWantAFreshSignIn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	stranger := r.browser()
	for _, path := range []string{"/account/passkeys/new", "/account/passkeys/change?passkey=" + strings.Repeat("0", 64)} {
		want := "/signin?" + url.Values{"return": {path}}.Encode()
		if to := stranger.get(path).to(t); to != want {
			t.Errorf("led to %s, want %s", to, want)
		}
		if page := stranger.get(want).want(t, http.StatusOK); !strings.Contains(page.body, "passkey") || strings.Contains(page.body, "to see what you can open") {
			t.Error("the page does not say what for")
		}
	}
	for _, path := range []string{"/account/passkeys", "/account/passkeys/begin", "/account/passkeys/change"} {
		if to := stranger.post(path, "answer", "{}", "passkey", "0").to(t); !strings.HasPrefix(to, "/signin?") {
			t.Errorf("%s: led to %s", path, to)
		}
	}
}

// Weakness: what a page or its begin says for one address tells whether it has a passkey.
// Checked: the page is the same before and after, and nothing is asked by address.
func TestPasskeysTellStrangersNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	stranger := r.browser()
	stranger.get("/.well-known/webauthn").want(t, http.StatusNotFound) // no related origins
	says := func() string {
		t.Helper()
		begun := regexp.MustCompile(`"challenge":"[^"]+"|"timeout":\d+`).ReplaceAllString(string(stranger.begun("/signin/passkey")), "")
		return begun + stranger.get("/signin").body
	}
	before := says()
	r.signedIn("maya@example.com").passkey()
	if after := says(); after != before || strings.Contains(after, "allowCredentials") {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// Where the auth host is above the computers' hosts, nothing of passkeys is shown or taken.
func TestNoPasskeysAboveTheComputers(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *control.Config) { c.Domain, c.AuthHost = "home.localhost", "localhost" })
	b := r.browser()
	at := "https://localhost:8443"
	page := b.get(at+"/signin").want(t, http.StatusOK)
	if strings.Contains(page.body, "passkey") || strings.Contains(page.body, "<script") || strings.Contains(page.Header.Get("Content-Security-Policy"), "script") {
		t.Error(page.body)
	}
	b.post(at+"/signin/passkey/begin").want(t, http.StatusNotFound)
	b.post(at+"/signin/passkey", "answer", "{}").want(t, http.StatusForbidden)
}

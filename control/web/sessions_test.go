package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"porchlight/control"
)

func TestAccount(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b, other := r.browser(), r.browser()
	if to := b.get("/").to(t); to != "/account" {
		t.Errorf("the root leads to %s", to)
	}
	if to := b.get("/account").to(t); to != "/signin?return=%2Faccount" {
		t.Errorf("signed out, the account leads to %s", to)
	}
	b.signIn("maya@example.com", "")
	goldenPage(t, "account", b.get("/account").want(t, http.StatusOK).body)

	other.post("/signin", "email", "maya@example.com").to(t)
	other.post("/signin/link", "token", tokenOf(t, r.mails("maya@example.com", 2))).to(t)
	before, next := r.waitForNext()
	b.post("/signout", "everywhere", "yes").to(t)
	for _, b := range []*browser{b, other} {
		b.get("/account").to(t)
	}
	after := <-next
	if after.err != nil || after.People[0].Epoch <= before.People[0].Epoch {
		t.Errorf("the epoch went from %d to %d, %v", before.People[0].Epoch, after.People[0].Epoch, after.err)
	}
}

// The account's sessions are told by what they were opened with and how, in words, whatever a
// browser calls itself; of a session of before it is said that it is another.
func TestSessionsInWords(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.member("bob@example.com", "app1")
	in := func(nth int, agent string) *browser {
		t.Helper()
		b := r.browser()
		b.agent = agent
		b.post("/signin", "email", "maya@example.com").to(t)
		b.post("/signin/link", "token", tokenOf(t, r.mails("maya@example.com", nth))).to(t)
		return b
	}
	for i, agent := range []string{
		"Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Safari/537.36 Edg/143.0.0.0",
		"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Mobile Safari/537.36",
		"<b>me</b>",
		"Linux <script>",
	} {
		in(i+1, agent)
	}
	phone := in(6, "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1")
	phone.passkey()
	page := phone.get("/account").want(t, http.StatusOK).body
	for _, want := range []string{
		`<b class="cut">Firefox on Linux</b>`, `<b class="cut">Edge on Windows</b>`, `<b class="cut">Chrome on Android</b>`, `<b class="cut">Another browser</b>`,
		`<b class="cut">Linux</b>`, `<b class="cut">Safari on iPhone</b><span class="sub">This browser · by passkey · From 127.0.0.1`, `aria-label="Sign out Firefox on Linux, since `, `<span class="sub">by mail · From `,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("without %s", want)
		}
	}
	if strings.Contains(page, "&lt;") {
		t.Error("a browser's own words are on the page")
	}
	if t.Failed() {
		t.Log(page)
	}
}

// Signing in as somebody else ends the session the browser had.
func TestSigningInReplacesTheSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.member("bob@example.com", "app1")
	b := r.signedIn("maya@example.com")
	b.signIn("bob@example.com", "")
	sessions, err := r.svc.Sessions.List(t.Context(), r.owner.AccountID)
	if err != nil || len(sessions) != 0 {
		t.Errorf("maya's sessions are %+v, %v", sessions, err)
	}
}

// Signing out takes the cookie away, and does not hand out again one whose
// session was renewed on the way in.
func TestSigningOutTakesTheCookie(t *testing.T) {
	t.Parallel()
	var clock lateClock
	r := newRig(t, func(c *control.Config) { c.Now = clock.Now })
	for n, later := range []time.Duration{0, 2 * 24 * time.Hour} { // the second renews
		b := r.browser()
		b.post("/signin", "email", "maya@example.com").want(t, http.StatusSeeOther)
		b.post("/signin/link", "token", tokenOf(t, r.mails("maya@example.com", n+1))).want(t, http.StatusSeeOther)
		clock.Add(later)
		a := b.post("/signout", "everywhere", "yes").want(t, http.StatusSeeOther)
		if cookies := a.Cookies(); len(cookies) != 1 || cookies[0].Name != "__Host-porchlight-"+r.svc.Keys.Instance() || cookies[0].Value != "" || cookies[0].MaxAge >= 0 {
			t.Errorf("signing out after %v sets %v", later, cookies)
		}
	}
}

func TestCookies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser()
	first := b.post("/signin", "email", "maya@example.com")
	second := b.post("/signin/link", "token", tokenOf(t, r.mails("maya@example.com", 1)))
	n := 0
	for _, a := range []answer{first, second} {
		for _, c := range a.Cookies() {
			n++
			if !strings.HasPrefix(c.Name, "__Host-porchlight-") || !strings.HasSuffix(c.Name, r.svc.Keys.Instance()) ||
				!c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
				t.Errorf("the cookie is %s", c.Raw)
			}
			if c.Value != "" && strings.Contains(c.Name, "signin") && c.MaxAge != 15*60 {
				t.Errorf("the sign-in cookie lives %d s", c.MaxAge)
			}
		}
	}
	if n != 4 { // begun, session, known from now on, no longer begun
		t.Errorf("%d cookies were set", n)
	}
}

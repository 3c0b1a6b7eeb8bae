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

package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv/pgtest"
	"porchlight/control/provider"
	"porchlight/test/issuer"
)

// newClub is a rig with a provider that speaks for example.com.
func newClub(t *testing.T, newRig func(testing.TB, ...func(*control.Config)) *rig) (*rig, *issuer.Issuer) {
	t.Helper()
	i := issuer.Start()
	t.Cleanup(i.Close)
	return newRig(t, func(c *control.Config) {
		c.Providers = []*provider.Provider{provider.New(i.Config("club", "Porch Club", "example.com"), nil, c.Log)}
	}), i
}

// with is the way to the provider and back, of somebody who is these claims there.
func (b *browser) with(i *issuer.Issuer, returnTo string, claims map[string]any) answer {
	b.t.Helper()
	address := b.get("/signin/with/club?" + url.Values{"return": {returnTo}}.Encode()).to(b.t)
	return b.get(i.SignIn(address, claims))
}

// The way by a provider: a button on the sign-in page, to the provider and back, to where
// somebody was going; at the account what it knows of them, and its end. On both stores.
func TestProviderInsteadOfAMail(t *testing.T) {
	t.Parallel()
	for kind, on := range map[string]func(testing.TB, ...func(*control.Config)) *rig{
		"bolt": newRig,
		"postgres": func(t testing.TB, change ...func(*control.Config)) *rig {
			return newRigOn(t, openStore(t, pgtest.Database(t)), change...)
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r, i := newClub(t, on)
			b := r.browser()
			page := b.get("/signin?return="+url.QueryEscape(visitPath())).want(t, http.StatusOK)
			goldenPage(t, "signin-providers", page.body)
			to := b.with(i, visitPath(), map[string]any{"sub": "1", "email": "maya@example.com", "email_verified": true, "sid": "s1"})
			if unescaped(to.to(t)) != visitPath() {
				t.Fatalf("led to %s", to.to(t))
			}
			account := b.get("/account").want(t, http.StatusOK)
			_, rest, found := strings.Cut(account.body, `name="login" value="`)
			if !found || !strings.Contains(account.body, "Porch Club") {
				t.Fatal(account.body)
			}
			out := toldOut(b, i.Logout(map[string]any{"sid": "s1"}))
			if out.StatusCode != http.StatusOK || out.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%d %s", out.StatusCode, out.body)
			}
			if to := b.get("/account").to(t); !strings.HasPrefix(to, "/signin") {
				t.Errorf("who signed out there is led to %s", to)
			}
			if out := toldOut(b, "x"); out.StatusCode != http.StatusBadRequest {
				t.Errorf("%d %s", out.StatusCode, out.body)
			}
			b.with(i, "", map[string]any{"sub": "1"}).to(t)
			b.post("/account/logins/remove", "login", rest[:64]).to(t)
			if account = b.get("/account"); strings.Contains(account.body, "Porch Club") {
				t.Error("it is still there")
			}
		})
	}
}

// toldOut tells of who signed out, as a provider does.
func toldOut(b *browser, token string) answer {
	b.t.Helper()
	req := b.request(http.MethodPost, "/signin/with/club/logout", strings.NewReader(url.Values{"logout_token": {token}}.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.do(req)
}

// Where the provider's word does not do, the page asks for the address, the mail's link says
// what else it does, and the browser that came from the provider is in, where it was going.
func TestProviderAsksForAMail(t *testing.T) {
	t.Parallel()
	r, i := newClub(t, newRig)
	b := r.browser()
	claims := map[string]any{"sub": "1", "email": "maya@club.example"}
	to := b.with(i, visitPath(), claims).to(t)
	if to != "/signin/with/club/prove" {
		t.Fatalf("led to %s", to)
	}
	goldenPage(t, "prove", b.get(to).want(t, http.StatusOK).body)
	if to := b.post(to, "email", "maya").to(t); !strings.HasSuffix(to, "/prove?wrong=1") {
		t.Errorf("led to %s", to)
	}
	if wrong := b.get("/signin/with/club/prove?wrong=1"); !strings.Contains(wrong.body, "does not look like") {
		t.Error(wrong.body)
	}
	check := b.get(b.post(to, "email", "maya@example.com").to(t)).want(t, http.StatusOK)
	if !strings.Contains(check.body, `action="/signin/with/club/prove"`) {
		t.Error("sent again, the mail would not prove it:", check.body)
	}
	link := r.mails("maya@example.com", 1).Links[0]
	goldenPage(t, "link-login", b.get(link).want(t, http.StatusOK).body)
	if page := r.browser().get(link); strings.Contains(page.body, "Porch Club") {
		t.Error("another browser's page says that it binds something")
	}
	if to := b.post("/signin/link", "token", tokenOf(t, r.mails("maya@example.com", 1))).to(t); unescaped(to) != visitPath() {
		t.Errorf("led to %s", to)
	}
	other := r.browser()
	if to := other.with(i, "", claims).to(t); to != "/account" {
		t.Errorf("led to %s", to)
	}
}

// Who has a passkey is led past the mail to a page that asks for it, and binds the provider
// by a button; from then on it signs them in. The page about mail lists it.
func TestPasskeyBindsProvider(t *testing.T) {
	t.Parallel()
	r, i := newClub(t, newRig)
	b := r.mailedIn("maya@example.com", 1)
	p := b.passkey()
	b.post("/signout").to(t)
	claims := map[string]any{"sub": "1", "email": "maya@example.com", "email_verified": true}
	prove := b.get(b.with(i, visitPath(), claims).to(t)).want(t, http.StatusOK)
	const bind = "/signin/with/club/bind"
	if !strings.Contains(prove.body, `href="/signin?return=`+url.QueryEscape(bind)+`"`) {
		t.Error(prove.body)
	}
	if to := b.get(bind).to(t); to != "/signin?return="+url.QueryEscape(bind) {
		t.Errorf("led to %s", to)
	}
	if to := b.touch(p, bind).to(t); to != bind {
		t.Errorf("led to %s", to)
	}
	goldenPage(t, "bind", b.get(bind).want(t, http.StatusOK).body)
	if to := b.post(bind).to(t); unescaped(to) != visitPath() {
		t.Errorf("led to %s", to)
	}
	b.post(bind).want(t, http.StatusForbidden) // the browser has nothing more to bind
	if page := b.get("/account/mail").want(t, http.StatusOK); !strings.Contains(page.body, "These sign you in as well") || !strings.Contains(page.body, "Porch Club") {
		t.Error(page.body)
	}
	if to := r.browser().with(i, "", claims).to(t); to != "/account" {
		t.Errorf("led to %s", to)
	}
}

// Weakness: another site begins a sign-in, or finishes one it began elsewhere. Checked: no
// page but our own sends browsers to a provider, and who comes back without a cookie is told.
func TestProviderIsBegunHere(t *testing.T) {
	t.Parallel()
	r, i := newClub(t, newRig)
	b := r.browser()
	for _, site := range []string{"cross-site", "same-site", "none"} {
		req := b.request(http.MethodGet, "/signin/with/club", nil)
		req.Header.Set("Sec-Fetch-Site", site)
		if a := b.do(req); a.to(t) != "/signin" || len(a.Cookies()) > 0 {
			t.Errorf("%s: led to %s", site, a.to(t))
		}
	}
	address := b.get("/signin/with/club").to(t)
	back := i.SignIn(address, map[string]any{"sub": "1", "email": "maya@example.com", "email_verified": true})
	if a := r.browser().get(back).want(t, http.StatusForbidden); !strings.Contains(a.body, "begun in another browser") || len(a.Cookies()) > 0 {
		t.Error(a.body)
	}
	b.get(back).to(t)
	b.get(back).want(t, http.StatusForbidden)
	for path, status := range map[string]int{"/signin/with/nobody": 404, "/signin/with/nobody/back": 404, "/signin/with/club/prove": 403} {
		b.get(path).want(t, status)
	}
}

// A provider that is down is said so at its button and where it leads. What wants somebody
// who has just signed in says so where a provider cannot tell.
func TestProviderCannotDoIt(t *testing.T) {
	t.Parallel()
	r, i := newClub(t, newRig)
	maya := map[string]any{"sub": "1", "email": "maya@example.com", "email_verified": true}
	b := r.browser()
	page := b.with(i, "/account/passkeys/new", maya).want(t, http.StatusForbidden)
	if !strings.Contains(page.body, "did not ask you to sign in anew") {
		t.Error(page.body)
	}
	address := b.get("/signin/with/club?return=%2Faccount%2Fpasskeys%2Fnew").to(t)
	if !strings.Contains(address, "max_age=600") {
		t.Error(address)
	}
	maya["auth_time"] = must(r.svc.Providers.Of(t.Context(), r.owner.AccountID))[0].LastUsedAt.Unix()
	if to := b.get(i.SignIn(address, maya)).to(t); to != "/account/passkeys/new" {
		t.Errorf("led to %s", to)
	}
	down, j := newClub(t, func(t testing.TB, change ...func(*control.Config)) *rig {
		return newRig(t, append(change, func(c *control.Config) {
			dead := issuer.Start()
			dead.Close()
			c.Providers = append(c.Providers, provider.New(dead.Config("dead", "Dead <Club>"), nil, nil))
		})...)
	})
	j.Away(false)
	b = down.browser()
	b.get("/signin/with/dead").want(t, http.StatusServiceUnavailable)
	page = b.get("/signin").want(t, http.StatusOK)
	goldenPage(t, "signin-provider-down", page.body)
}

// Where mails reach nobody, the sign-in page offers none, and nobody is asked to prove by one.
func TestProviderWithoutMails(t *testing.T) {
	t.Parallel()
	r, i := newClub(t, newRig)
	r.server.Config.Handler = New(r.svc, Config{NoMail: true})
	b := r.browser()
	page := b.get("/signin").want(t, http.StatusOK)
	if strings.Contains(page.body, `name="email"`) || !strings.Contains(page.body, `class="btn primary" href="/signin/with/club"`) {
		t.Error(page.body)
	}
	to := b.with(i, "", map[string]any{"sub": "1", "email": "maya@club.example"}).to(t)
	if page := b.get(to).want(t, http.StatusOK); strings.Contains(page.body, `name="email"`) || !strings.Contains(page.body, "have you none, tell whoever runs this server") {
		t.Error(page.body)
	}
	if to := b.with(i, "", map[string]any{"sub": "2", "email": "maya@example.com", "email_verified": true}).to(t); to != "/account" {
		t.Errorf("led to %s", to)
	}
	// An invitation by link works as ever.
	invited := must(r.client().Invite(t.Context(), controlapi.Invite{Email: "bob@example.com", Apps: []string{"app1"}}))
	named := must(url.Parse(must(r.client().InvitationLink(t.Context(), controlapi.LinkWanted{AccountID: invited.AccountID})).URL)).Path
	bob := r.browser()
	bob.with(i, named, map[string]any{"sub": "3", "email": "bob@example.com", "email_verified": true}).to(t)
	if a := bob.post(named); a.StatusCode != http.StatusSeeOther || !strings.Contains(a.Header.Get("Location"), "notes.maya.localhost") {
		t.Errorf("bob got %d %s", a.StatusCode, a.body)
	}
}

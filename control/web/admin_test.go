package web

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/control"
	"porchlight/control/audit"
	"porchlight/test/authenticator"
	"porchlight/test/programs"
)

// signsInToAdmin is where everybody is sent who has not just shown a passkey.
const signsInToAdmin = authURL + "/signin?return=%2Fadmin"

// operates makes an operator with a passkey, who has entered.
func (r *rig) operates(email string) (*browser, *authenticator.Passkey) {
	r.t.Helper()
	programs.Got(r.svc.Operators.Add(r.t.Context(), email))(r.t)
	b := r.mailedIn(email, 1)
	p := b.passkey()
	b.enters()
	return b, p
}

// enters opens /admin for an operator who has just shown a passkey.
func (b *browser) enters() {
	b.t.Helper()
	in := b.get("/admin")
	if to := in.to(b.t); to != "/admin" {
		b.t.Fatalf("led to %s", to)
	}
	set := in.Header["Set-Cookie"]
	if len(set) != 1 || !strings.HasPrefix(set[0], "__Host-porchlight-admin-") || !strings.HasSuffix(set[0], "; Path=/; HttpOnly; Secure; SameSite=Strict") {
		b.t.Errorf("the cookie is %q", set)
	}
	b.get("/admin").want(b.t, http.StatusOK)
}

var adminForm = regexp.MustCompile(`name="form" value="([^"]+)"`)

// adminForm is the token of the forms at /admin.
func (b *browser) adminForm() string {
	b.t.Helper()
	return adminForm.FindStringSubmatch(b.get("/admin").want(b.t, http.StatusOK).body)[1]
}

// movedClock is ahead of the machine's, or behind it.
type movedClock struct{ ahead atomic.Int64 }

func (c *movedClock) now() time.Time       { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *movedClock) move(d time.Duration) { c.ahead.Add(int64(d)) }

// clockOf has a rig go by a clock that moves.
func clockOf(c *movedClock) func(*control.Config) {
	return func(cfg *control.Config) { cfg.Now = c.now }
}

// eachAdmin are all rows of /admin, and some that there are none of.
func (r *rig) eachAdmin(do func(method, path string)) {
	for _, rt := range append(newHandler(r.svc, Config{AdminURL: authURL}).adminRoutes(), route{"GET", "/admin/nothing", 0, nil}, route{"POST", "/admin/no/thing", 0, nil}) {
		do(rt.method, strings.NewReplacer("{id}", "x", "{kind}", "account").Replace(rt.path))
	}
}

// Weakness: a page of the operator's is served to somebody else, or its refusal says who is one.
// Checked: every row of /admin and some that are none, by every lower role, which all get one
// answer; who has shown a passkey and is no operator gets that of any address where nothing is.
func TestAdminByEveryLowerRole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	olga, key := r.operates("olga@porch.example")
	programs.Got(r.svc.Operators.Add(t.Context(), "otto@porch.example"))(t)
	r.member("bob@example.com", "app1")
	stolen := r.browser()
	for name, value := range map[string]string{
		"admin": "x", "session": strings.Repeat("x", 43), // neither
	} {
		stolen.http.Jar.SetCookies(programs.Got(url.Parse(authURL))(t), []*http.Cookie{{Name: "__Host-porchlight-" + name + "-" + r.svc.Keys.Instance(), Value: value, Secure: true, Path: "/"}})
	}
	// The account's session in the place of the one at /admin.
	swapped := r.browser()
	account := olga.value("__Host-porchlight-" + r.svc.Keys.Instance())
	swapped.http.Jar.SetCookies(programs.Got(url.Parse(authURL))(t), []*http.Cookie{{Name: "__Host-porchlight-admin-" + r.svc.Keys.Instance(), Value: account, Secure: true, Path: "/"}})
	for name, b := range map[string]*browser{
		"a stranger": r.browser(), "a made-up cookie": stolen, "another cookie": swapped,
	} {
		r.eachAdmin(func(method, path string) {
			a := b.do(b.adminRequest(method, path))
			want := signsInToAdmin
			if method == "GET" && path != "/admin" {
				want += strings.ReplaceAll(strings.TrimPrefix(path, "/admin"), "/", "%2F")
			}
			if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != want || a.body != "" && strings.Contains(a.body, "Overview") {
				t.Errorf("%s: %s %s: %s to %s", name, method, path, a.Status, a.Header.Get("Location"))
			}
		})
	}
	// By mail, whoever they are: to their passkey, or to make one.
	for email, nth := range map[string]int{"bob@example.com": 1, "maya@example.com": 1, "otto@porch.example": 1, "olga@porch.example": 2} {
		b := r.mailedIn(email, nth)
		r.eachAdmin(func(method, path string) {
			to := b.do(b.adminRequest(method, path)).to(t)
			if want := map[bool]string{true: "/signin?return=%2Fadmin", false: "/account/passkeys/new?return=%2Fadmin"}[email == "olga@porch.example"]; !strings.HasPrefix(to, want) {
				t.Errorf("%s by mail: %s %s: led to %s", email, method, path, to)
			}
		})
	}
	// By a passkey, and no operator.
	b := r.mailedIn("maya@example.com", 2)
	b.passkey()
	nothing := b.get("/nothing-of-the-sort").want(t, http.StatusNotFound).body
	r.eachAdmin(func(method, path string) {
		if a := b.do(b.adminRequest(method, path)); a.StatusCode != http.StatusNotFound || a.body != nothing {
			t.Errorf("an owner with a passkey: %s %s: %s %s", method, path, a.Status, a.body)
		}
	})
	// An agent's credential, and a bearer of any kind.
	req := b.request(http.MethodGet, "/admin", nil)
	req.Header.Set("Authorization", "Bearer "+r.owner.Credential)
	if to := r.browser().do(req).to(t); to != signsInToAdmin {
		t.Errorf("a computer is led to %s", to)
	}
	// The operator's own browser, by a form from elsewhere or without its token.
	form := olga.adminForm()
	// Weakness: what seals a form's token hides nothing, so a page told its session's.
	sealed, _, _ := strings.Cut(form, ".")
	session := olga.value("__Host-porchlight-admin-" + r.svc.Keys.Instance())
	if inside := programs.Got(base64.RawURLEncoding.DecodeString(sealed))(t); session == "" || strings.Contains(string(inside), session) {
		t.Errorf("a form tells the session: %s", inside)
	}
	for name, change := range map[string]func(*http.Request){
		"another site": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"an app":       func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"an old browser": func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", "https://notes.maya.localhost:8443")
		},
	} {
		req := olga.adminRequest(http.MethodPost, "/admin/signout", "form", form)
		change(req)
		if a := olga.do(req); a.StatusCode != http.StatusForbidden {
			t.Errorf("a form of %s: %s", name, a.Status)
		}
	}
	for _, token := range []string{"", "x", form + "x"} {
		olga.post("/admin/signout", "form", token).want(t, http.StatusBadRequest)
	}
	olga.get("/admin").want(t, http.StatusOK)
	// Out, and in again by one touch.
	if to := olga.post("/admin/signout", "form", form).to(t); to != authURL+"/signin" {
		t.Errorf("led to %s", to)
	}
	if to := olga.get("/admin").to(t); to != signsInToAdmin {
		t.Errorf("led to %s", to)
	}
	if to := olga.touch(key, "/admin").to(t); to != "/admin" {
		t.Errorf("led to %s", to)
	}
	olga.enters()
}

// value is a cookie that this browser has.
func (b *browser) value(name string) string {
	for _, c := range b.http.Jar.Cookies(programs.Got(url.Parse(authURL))(b.t)) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// adminRequest is a request as this browser makes it.
func (b *browser) adminRequest(method, path string, fields ...string) *http.Request {
	b.t.Helper()
	f := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		f.Add(fields[i], fields[i+1])
	}
	req := b.request(method, path, strings.NewReader(f.Encode()))
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		req.Header.Set("Origin", authURL)
	}
	return req
}

// What an operator's session stands on ends it at once: the role, the passkey, the account's
// session, the account itself; and time does. What the account's session is enough for stays.
func TestAdminEndsAtOnce(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(r *rig, b *browser, p *authenticator.Passkey, clock *movedClock){
		"the role": func(r *rig, _ *browser, _ *authenticator.Passkey, _ *movedClock) {
			programs.Got(r.svc.Operators.Remove(r.t.Context(), "olga@porch.example"))(r.t)
		},
		"the role, given again": func(r *rig, _ *browser, _ *authenticator.Passkey, clock *movedClock) {
			programs.Got(r.svc.Operators.Remove(r.t.Context(), "olga@porch.example"))(r.t)
			clock.move(time.Second)
			programs.Got(r.svc.Operators.Add(r.t.Context(), "olga@porch.example"))(r.t)
		},
		"the passkey": func(r *rig, _ *browser, p *authenticator.Passkey, _ *movedClock) {
			b := r.browser() // another device, with the same one
			b.touch(p, "/account").to(r.t)
			change := passkeyChange.FindStringSubmatch(b.get("/account").body)[1]
			b.post("/account/passkeys/change", "passkey", strings.TrimPrefix(change, "/account/passkeys/change?passkey="), "remove", "yes").to(r.t)
		},
		"the account's session": func(r *rig, b *browser, _ *authenticator.Passkey, _ *movedClock) { b.post("/signout").to(r.t) },
		"the account": func(r *rig, _ *browser, _ *authenticator.Passkey, _ *movedClock) {
			programs.Must(r.t, r.svc.Accounts.Remove(r.t.Context(), "olga@porch.example"))
		},
		"15 minutes": func(_ *rig, _ *browser, _ *authenticator.Passkey, clock *movedClock) {
			clock.move(control.OperatorIdle)
		},
		"half a day": func(r *rig, b *browser, p *authenticator.Passkey, clock *movedClock) {
			for range 12*60/14 + 1 {
				clock.move(14 * time.Minute)
				b.get("/admin")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := &movedClock{}
			r := newRig(t, clockOf(clock))
			b, p := r.operates("olga@porch.example")
			clock.move(14 * time.Minute) // used, and so kept open
			b.get("/admin").want(t, http.StatusOK)
			clock.move(14 * time.Minute)
			b.get("/admin").want(t, http.StatusOK)
			end(r, b, p, clock)
			if a := b.get("/admin"); a.StatusCode == http.StatusOK || a.Header.Get("Location") == "/admin" {
				t.Errorf("%s to %s", a.Status, a.Header.Get("Location"))
			}
		})
	}
	t.Run("suspended", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		b, _ := r.operates("olga@porch.example")
		programs.Got(r.svc.Suspensions.Suspend(t.Context(), control.SuspendAccount, "olga@porch.example", "a lost laptop", control.ByCommandLine))(t)
		if a := b.get("/admin").want(t, http.StatusForbidden); a.body != b.get("/account").body {
			t.Error(a.body)
		}
	})
}

// A page of /admin runs no script but the one for times, and no other page has it.
func TestAdminPolicy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b, _ := r.operates("olga@porch.example")
	head := b.get("/admin").Header
	for name, want := range map[string]string{
		"Content-Security-Policy":      "default-src 'none'; style-src 'self'; img-src 'self'; script-src " + authURL + timesPath + "; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                "no-store",
		"Access-Control-Allow-Origin":  "",
		"Referrer-Policy":              "same-origin",
	} {
		if got := head.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	req := b.request(http.MethodOptions, "/admin", nil)
	req.Header.Set("Origin", "https://notes.maya.localhost:8443")
	req.Header.Set("Access-Control-Request-Method", "GET")
	if a := b.do(req); a.Header.Get("Access-Control-Allow-Origin") != "" || a.StatusCode < 400 {
		t.Errorf("%s %v", a.Status, a.Header)
	}
	// Where /admin is elsewhere, or nowhere, it is as any address where nothing is.
	for _, elsewhere := range []string{"", "https://control.localhost:8444"} {
		h := newHandler(r.svc, Config{AdminURL: elsewhere})
		for _, rt := range h.routes {
			if isAdmin(rt.path) {
				t.Errorf("with %q there is %s", elsewhere, rt.path)
			}
		}
	}
}

// Coming and being turned away are kept, by the account's id.
func TestAdminIsAudited(t *testing.T) {
	t.Parallel()
	var log *audit.Log
	r := newRig(t, func(c *control.Config) {
		log = audit.New(audit.Config{Store: c.Store})
		c.Audit = log
	})
	r.operates("olga@porch.example")
	maya := r.mailedIn("maya@example.com", 1)
	maya.passkey()
	maya.get("/admin").want(t, http.StatusNotFound)
	var kinds []string
	programs.Must(t, log.Flush(t.Context()))
	programs.Must(t, audit.List(t.Context(), r.store, func(row audit.Row) error {
		if strings.HasPrefix(row.Kind, "operator-") && row.On != "" {
			kinds = append(kinds, row.Kind)
		}
		return nil
	}))
	if want := []string{"operator-added", "operator-entered", "operator-refused"}; !slices.Equal(kinds, want) {
		t.Errorf("kept are %v, want %v", kinds, want)
	}
}

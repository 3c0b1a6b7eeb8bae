package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

func TestSyncWakesAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first, next := r.waitForNext()
	if first.Computer != r.owner.Computer || len(first.People) != 1 {
		t.Fatalf("the first snapshot is %+v", first)
	}
	r.member("bob@example.com", "app1")
	got := <-next
	if got.err != nil || got.Unchanged || got.Version == first.Version || len(got.People) != 2 {
		t.Errorf("the waiting sync brought %+v, %v", got.Snapshot, got.err)
	}
}

func TestPutApps(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.client()
	want := []controlapi.App{{ID: "x1", Name: "photos", Label: "Photos", Live: true}}
	programs.Must(t, c.PutApps(t.Context(), controlapi.Apps{Apps: want}))
	shown := []control.InvitedApp{{ID: "x1", Label: "Photos", Host: "photos.maya.localhost:8443"}}
	if got := must(r.svc.People.Memberships(t.Context(), r.owner.AccountID)); !slices.Equal(got[0].Apps, shown) {
		t.Errorf("the owner is shown %+v", got)
	}
	if s := r.snapshot(); s.Reported != (controlapi.Apps{Apps: want}).Digest() {
		t.Errorf("the agent is not told that its apps are known: %+v", s)
	}
	err := c.PutApps(t.Context(), controlapi.Apps{Apps: []controlapi.App{{ID: "x", Name: "www", Label: "x"}}})
	var e *controlapi.Error
	if !errors.As(err, &e) || e.Code != controlapi.CodeInvalid || e.Message == "" {
		t.Errorf("got %v", err)
	}
}

func TestPublicKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if key := r.publicKey(); key != r.svc.Keys.Public()[0] {
		t.Errorf("got %s", key)
	}
	b := r.browser()
	for _, ask := range []string{"GET /auth/pubkey", "OPTIONS /auth/pubkey", "GET /auth/jwks.json", "OPTIONS /auth/jwks.json"} {
		method, path, _ := strings.Cut(ask, " ")
		req := b.request(method, path, nil)
		req.Header.Set("Origin", "https://client.example")
		req.Header.Set("Access-Control-Request-Method", "GET")
		req.Header.Set("Access-Control-Request-Headers", "authorization")
		a := b.do(req)
		if a.StatusCode > 204 || a.Header.Get("Access-Control-Allow-Origin") != "*" ||
			a.Header.Get("Access-Control-Allow-Headers") != "Authorization, Content-Type, *" ||
			a.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %s %v", ask, a.Status, a.Header)
		}
	}
}

// Every row of the device tier refuses everybody without a credential, in JSON.
func TestDeviceTierWantsACredential(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser()
	b.signIn("maya@example.com", "") // a signed-in person is no device
	for method, path := range map[string]string{
		http.MethodGet: controlapi.PathPeople, http.MethodPut: controlapi.PathApps, http.MethodPost: controlapi.PathVisits,
	} {
		for _, auth := range []string{"", "Bearer ", "Bearer x", "Basic " + r.owner.Credential, r.owner.Credential, "Bearer " + strings.Repeat("A", 43)} {
			req := b.request(method, path, strings.NewReader("{}"))
			req.Header.Set("Content-Type", "application/json")
			if auth != "" {
				req.Header.Set("Authorization", auth)
			}
			a := b.do(req)
			var e controlapi.Error
			if err := json.Unmarshal([]byte(a.body), &e); err != nil || a.StatusCode != http.StatusUnauthorized ||
				e.Code != controlapi.CodeUnauthorized || e.Message == "" || a.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s with %q: %s %s", method, path, auth, a.Status, a.body)
			}
		}
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser()
	for name, tt := range map[string]struct {
		kind, body string
		status     int
	}{
		"not JSON":       {"application/json", "hello", 400},
		"wrong type":     {"application/json", `{"apps": "x"}`, 400},
		"two values":     {"application/json", `{} {}`, 400},
		"a bracket more": {"application/json", `{"apps": []}]`, 400},
		"nothing":        {"application/json", ``, 400},
		"cut off":        {"application/json", `{"apps": [`, 400},
		"a form":         {"application/x-www-form-urlencoded", `{}`, 415},
		"too large":      {"application/json", `{"apps": [` + strings.Repeat(" ", maxJSON) + `]}`, 413},
		"unknown fields": {"application/json; charset=utf-8", `{"apps": [], "later": 1}`, 204},
	} {
		req := b.request(http.MethodPut, controlapi.PathApps, strings.NewReader(tt.body))
		req.Header.Set("Content-Type", tt.kind)
		req.Header.Set("Authorization", "Bearer "+r.owner.Credential)
		req.Header.Set(controlapi.HeaderProtocol, controlapi.Protocol)
		if a := b.do(req); a.StatusCode != tt.status {
			t.Errorf("%s: %s %s", name, a.Status, a.body)
		}
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser()
	for _, path := range []string{"/signin", "/about", "/nowhere", "/account", "/auth/pubkey", "/v1/sync", "/v1/nowhere", "/healthz", stylePath, iconPath} {
		a := b.get(path)
		h := a.Header
		csp := h.Get("Content-Security-Policy")
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "same-origin" ||
			!strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %v", path, h)
		}
		if h.Get("Strict-Transport-Security") != "" {
			t.Errorf("%s sends HSTS under localhost", path)
		}
		immutable := strings.HasPrefix(path, "/assets/")
		if cache := h.Get("Cache-Control"); immutable != strings.Contains(cache, "immutable") || cache == "" {
			t.Errorf("%s: Cache-Control %q", path, cache)
		}
		if path != "/signin" && strings.Contains(a.body, "<script") || strings.Contains(a.body, "<script>") || strings.Contains(a.body, " style=") {
			t.Errorf("%s has a script or a style attribute", path)
		}
	}
	req := httptest.NewRequest(http.MethodGet, "https://control.example.net/signin", nil)
	w := httptest.NewRecorder()
	New(farRig(t).svc, Config{}).ServeHTTP(w, req)
	if w.Code != http.StatusOK || w.Header().Get("Strict-Transport-Security") == "" {
		t.Errorf("away from localhost: %d %v", w.Code, w.Header())
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser()
	for _, tt := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/nowhere", 404, ""},
		{"GET", "/assets/style-000000000000.css", 404, ""},
		{"GET", "/assets/../templates/layout.html", 404, ""},
		{"GET", "/v1/nowhere", 404, ""},
		{"PUT", "/signin", 405, "GET, POST"},
		{"POST", "/visit", 405, "GET"},
		{"DELETE", "/v1/apps", 405, "PUT"},
		{"GET", "/signout", 405, "POST"},
		{"GET", controlapi.PathPeopleInvite, 405, "POST"},
		{"GET", "/healthz", 200, ""},
	} {
		req := b.request(tt.method, tt.path, nil)
		req.URL.Path = tt.path
		if a := b.do(req); a.StatusCode != tt.status || a.Header.Get("Allow") != tt.allow {
			if a.StatusCode == http.StatusMovedPermanently || a.StatusCode == http.StatusTemporaryRedirect {
				continue // the mux cleans paths; where it leads to is not there either
			}
			t.Errorf("%s %s: %s, Allow %q", tt.method, tt.path, a.Status, a.Header.Get("Allow"))
		}
	}
	// Weakness: DNS rebinding, or a host of somebody's computer, shows our pages
	// under a foreign name. Checked: they are shown under our own only.
	for _, host := range []string{"evil.example", "control.localhost", "control.localhost:9443", "maya.localhost:8443"} {
		req := b.request(http.MethodGet, "/signin", nil)
		req.Host = host
		b.do(req).want(t, http.StatusMisdirectedRequest)
	}
}

// TestV1IsBounded: a computer that asks without end is told 429 and when to come
// back; a sync that waits meanwhile has cost one request and goes on.
func TestV1IsBounded(t *testing.T) {
	t.Parallel()
	clock := stopped()
	r := newRig(t, clock.on)
	c := r.client()
	asked := func() (answered int) {
		t.Helper()
		for ; answered < 10_000; answered++ {
			_, err := c.Grants(t.Context())
			if err == nil {
				continue
			}
			refusal, ok := errors.AsType[*controlapi.Error](err)
			if !ok || refusal.Code != controlapi.CodeTooMany || refusal.HTTPStatus != http.StatusTooManyRequests || refusal.RetryAfter <= 0 {
				t.Fatalf("refused with %+v", err)
			}
			return answered
		}
		t.Fatalf("%d requests were answered", answered)
		return answered
	}
	most := asked()
	clock.pass(time.Second)
	again := asked()
	if again == 0 || again >= most {
		t.Errorf("%d requests at once, and %d within the next second", most, again)
	}

	clock.pass(time.Second)
	_, next := r.waitForNext()
	if n := asked(); n != again-1 {
		t.Errorf("%d requests beside a sync, %d without", n, again)
	}
	r.member("bob@example.com", "app1")
	if got := <-next; got.err != nil || len(got.People) != 2 {
		t.Errorf("the waiting sync brought %+v, %v", got.Snapshot, got.err)
	}
}

// stoppedClock is a control plane's that moves only when it is told, so that the slowest
// machine asks faster than it is allowed to.
type stoppedClock struct{ at atomic.Int64 } // unix nanoseconds

func stopped() *stoppedClock {
	c := &stoppedClock{}
	c.at.Store(time.Now().UnixNano())
	return c
}

func (c *stoppedClock) pass(d time.Duration) { c.at.Add(int64(d)) }

// on is for newRig. The control plane is one that is not the computer's own, which bounds
// what it is asked.
func (c *stoppedClock) on(cfg *control.Config) {
	cfg.Domain, cfg.AuthHost, cfg.PublicPort = "porch.example", "control.example", 443
	cfg.Now = func() time.Time { return time.Unix(0, c.at.Load()) }
}

// Weakness: whoever opens an app's address has its computer ask about a code, good
// or not. Attack: a stranger brings wrong codes until the computer is told 429.
// Checked: the computer still hears of its people, and its owner still removes one.
func TestVisitorsDoNotKeepAComputerFromSyncing(t *testing.T) {
	t.Parallel()
	r := newRig(t, stopped().on)
	c := r.client()
	bob := r.member("bob@example.com", "app1")
	for asked := 0; ; asked++ {
		_, err := c.RedeemVisit(t.Context(), controlapi.Redeem{Code: "wrong", CodeVerifier: "wrong", RedirectURI: "https://notes.maya.porch.example/"})
		if control.IsRefusal(err, controlapi.CodeTooMany) {
			break
		}
		if !control.IsRefusal(err, controlapi.CodeInvalidGrant) || asked > 10_000 {
			t.Fatalf("wrong code %d: %v", asked, err)
		}
	}
	if _, err := c.Remove(t.Context(), controlapi.Remove{AccountID: bob.AccountID}); err != nil {
		t.Errorf("removing somebody: %v", err)
	}
	removed := func(p controlapi.Person) bool {
		return p.AccountID == bob.AccountID && p.Status == controlapi.PersonRemoved
	}
	if s := r.snapshot(); !slices.ContainsFunc(s.People, removed) {
		t.Errorf("the sync brought %+v", s.People)
	}
}

// Whoever found a weakness reads where to report it, where the operator says so, in the
// form of RFC 9116.
func TestSecurityText(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	at := time.Date(2026, 11, 24, 8, 0, 0, 0, time.FixedZone("", 3600))
	for contact, want := range map[string]string{
		"": "",
		"mailto:security@porch.example": "Contact: mailto:security@porch.example\nExpires: 2026-12-24T07:00:00Z\n" +
			"Canonical: https://control.localhost:8443/.well-known/security.txt\n",
	} {
		h := described(t, New(r.svc, Config{SecurityContact: contact, Now: func() time.Time { return at }}))
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/.well-known/security.txt", nil))
		switch {
		case want == "" && answer.Code != http.StatusNotFound:
			t.Errorf("without a contact: %d", answer.Code)
		case want != "" && (answer.Body.String() != want || answer.Header().Get("Content-Type") != "text/plain; charset=utf-8"):
			t.Errorf("%d: %q, %s", answer.Code, answer.Body, answer.Header())
		}
	}
}

package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

func specAuthorizeParameters(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.remote(0)
	b := r.signedIn("maya@example.com")
	b.get(c.authorizePath()).want(t, http.StatusOK)
	b.get(c.authorizePath("scope", "", "prompt", "consent")).want(t, http.StatusOK)
	b.get(c.authorizePath("state", "")).want(t, http.StatusOK)
	b.get(c.authorizePath("scope", "openid connect offline_access")).want(t, http.StatusOK)
	for what, path := range map[string]string{
		"no challenge":        c.authorizePath("code_challenge", ""),
		"a malformed one":     c.authorizePath("code_challenge", "short"),
		"padded":              c.authorizePath("code_challenge", challenge()+"="),
		"no method":           c.authorizePath("code_challenge_method", ""),
		"plain":               c.authorizePath("code_challenge_method", "plain"),
		"another scope":       c.authorizePath("scope", "openid"),
		"without connect":     c.authorizePath("scope", "openid connects"),
		"two challenges":      c.authorizePath() + "&code_challenge=" + challenge(),
		"two methods":         c.authorizePath() + "&code_challenge_method=plain",
		"scope twice":         c.authorizePath() + "&scope=connect",
		"signed out is alike": c.authorizePath("scope", "openid"),
	} {
		browser := b
		if what == "signed out is alike" {
			browser = r.browser()
		}
		back := clientAnswer(t, browser.get(path))
		code := "access_denied"
		if strings.Contains(path, "openid") || what == "scope twice" {
			code = "invalid_scope"
		}
		if back.Get("error") != code || back.Has("code") || back.Get("state") != "a state/with+odd&things ü" {
			t.Errorf("%s: back with %v", what, back)
		}
		// The form does not get past what the page would not show.
		if back := clientAnswer(t, browser.post(path, "decision", "allow", "computer", "maya")); back.Has("code") {
			t.Errorf("%s: consented", what)
		}
	}
}

func specSignInAndBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.remote(0)
	b := r.browser()
	signIn := b.get(c.authorizePath()).to(t)
	page := b.get(signIn).want(t, http.StatusOK)
	if !strings.Contains(page.body, "to connect <b><bdi dir=\"auto\">Pocket Notes</bdi></b>") {
		t.Errorf("the sign-in page does not say what for:\n%s", page.body)
	}
	if to := b.signIn("maya@example.com", must(url.Parse(signIn)).Query().Get("return")); to != c.authorizePath() {
		t.Fatalf("signing in led to %s", to)
	}
	b.get(c.authorizePath()).want(t, http.StatusOK)

	// Signing in leads to no authorization that could not be shown.
	for _, path := range []string{
		c.authorizePath("client_id", "unknown"), c.authorizePath("redirect_uri", "https://evil.example/"),
		c.authorizePath("response_type", "token"), controlapi.PathAuthorize,
	} {
		page := r.browser().get("/signin?"+url.Values{"return": {path}}.Encode()).want(t, http.StatusOK)
		if strings.Contains(page.body, `name="return"`) {
			t.Errorf("signing in would lead to %s", path)
		}
	}
}

func specConsent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.remote(0)
	r.member("bob@example.com", "app1")
	own := must(r.svc.Computers.Ensure(t.Context(), "bob@example.com", "bob"))
	owner, bob, carol := r.browser(), r.browser(), r.browser()
	owner.signIn("maya@example.com", "")
	bob.signIn("bob@example.com", "")

	page := owner.get(c.authorizePath()).want(t, http.StatusOK)
	goldenPage(t, "consent", page.body)
	if csp := page.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "form-action 'self' https://pocketnotes.example;") {
		t.Errorf("the redirect to the client would be blocked: %s", csp)
	}
	goldenPage(t, "consent-choice", bob.get(c.authorizePath()).want(t, http.StatusOK).body)

	// With a choice to make, no answer is no choice; another's computer is none.
	goldenPage(t, "consent-again", bob.post(c.authorizePath(), "decision", "allow").want(t, http.StatusBadRequest).body)
	if must(r.svc.Computers.Ensure(t.Context(), "zoe@example.com", "zoe")).Computer.Name != "zoe" {
		t.Fatal("no computer of a stranger")
	}
	for _, name := range []string{"zoe", "nobody", "MAYA", own.Computer.ID} {
		bob.post(c.authorizePath(), "decision", "allow", "computer", name).want(t, http.StatusForbidden)
	}
	bob.post(c.authorizePath(), "computer", "bob").want(t, http.StatusBadRequest)
	for _, tt := range []struct{ name, host string }{{"maya", r.owner.Computer.Host}, {"bob", own.Computer.Host}} {
		code := c.param(bob.post(c.authorizePath(), "decision", "allow", "computer", tt.name), "code")
		if got := c.exchange(code).want(t, http.StatusOK).tokens(t); got.Host != tt.host || claims(t, got.AccessToken)["aud"] != tt.host {
			t.Errorf("chosen %s, got %+v", tt.host, got)
		}
	}

	// Somebody else has signed in since the page was shown.
	shown := regexp.MustCompile(`name="account" value="([^"]+)"`).FindStringSubmatch(page.body)[1]
	bob.post(c.authorizePath(), "decision", "allow", "computer", "bob", "account", shown).want(t, http.StatusConflict)

	// Nothing to connect: said so, and the way back is open.
	programs.Got(r.svc.Accounts.Ensure(t.Context(), "carol@example.com"))(t)
	carol.signIn("carol@example.com", "")
	goldenPage(t, "consent-nothing", carol.get(c.authorizePath()).want(t, http.StatusForbidden).body)
	carol.post(c.authorizePath(), "decision", "allow").want(t, http.StatusForbidden)
	if back := clientAnswer(t, carol.post(c.authorizePath(), "decision", "deny")); back.Get("error") != "access_denied" {
		t.Errorf("back with %v", back)
	}

	// A foreign site's form, and a session that ended.
	req := owner.request(http.MethodPost, c.authorizePath(), strings.NewReader("decision=allow&computer=maya"))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", "https://pocketnotes.example")
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	owner.do(req).want(t, http.StatusForbidden)
	owner.post("/signout").want(t, http.StatusSeeOther)
	if to := owner.post(c.authorizePath(), "decision", "allow", "computer", "maya").to(t); !strings.HasPrefix(to, "/signin?") {
		t.Errorf("signed out, consent leads to %s", to)
	}
}

func specApproval(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.remote(0)
	b := r.signedIn("maya@example.com")
	a := b.post(c.authorizePath(), "decision", "allow", "computer", "maya")
	back := clientAnswer(t, a)
	if len(back.Get("code")) != 43 || back.Get("state") != "a state/with+odd&things ü" || len(back) != 3 { // with iss
		t.Errorf("back with %v", back)
	}
	if to := a.Header.Get("Location"); strings.ContainsAny(to, "+ ") {
		t.Errorf("not every decoder reads %s", to)
	}
	// With one computer there is nothing to choose.
	if back := clientAnswer(t, b.post(c.authorizePath("state", ""), "decision", "allow")); !back.Has("code") || back.Has("state") {
		t.Errorf("back with %v", back)
	}
	// A native app.
	native := r.remote(0, "com.example.notes:/cb")
	page := b.get(native.authorizePath()).want(t, http.StatusOK)
	if csp := page.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "form-action 'self' com.example.notes:;") {
		t.Errorf("policy %s", csp)
	}
	if !strings.Contains(page.body, "Afterwards you go to <b>the app on this device</b>.") {
		t.Errorf("it does not say where it leads: %s", page.body)
	}
	german := b.request(http.MethodGet, native.authorizePath(), nil)
	german.Header.Set("Accept-Language", "de")
	if page := b.do(german).want(t, http.StatusOK); !strings.Contains(page.body, "Danach geht es zu <b>der App auf diesem Gerät</b>.") {
		t.Errorf("in German it does not say where it leads: %s", page.body)
	}
	if to := b.post(native.authorizePath(), "decision", "allow").to(t); !strings.HasPrefix(to, "com.example.notes:/cb?code=") {
		t.Errorf("led to %s", to)
	}
}

func specDenial(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.remote(0)
	b := r.signedIn("maya@example.com")
	back := clientAnswer(t, b.post(c.authorizePath(), "decision", "deny", "computer", "maya"))
	if back.Get("error") != "access_denied" || back.Get("state") != "a state/with+odd&things ü" || back.Has("code") {
		t.Errorf("back with %v", back)
	}
}

func specNoRedirect(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.remote(0)
	b := r.signedIn("maya@example.com")
	for what, tt := range map[string]struct{ path, code string }{
		"unknown client":   {c.authorizePath("client_id", strings.Repeat("a", 26)), "invalid_client"},
		"odd client":       {c.authorizePath("client_id", "../x"), "invalid_client"},
		"no client":        {c.authorizePath("client_id", ""), "invalid_client"},
		"two clients":      {c.authorizePath() + "&client_id=" + c.client.ID, "invalid_client"},
		"another address":  {c.authorizePath("redirect_uri", "https://evil.example/cb"), "invalid_redirect_uri"},
		"a longer one":     {c.authorizePath("redirect_uri", clientRedirect+"/x"), "invalid_redirect_uri"},
		"another case":     {c.authorizePath("redirect_uri", strings.Replace(clientRedirect, "https", "HTTPS", 1)), "invalid_redirect_uri"},
		"none":             {c.authorizePath("redirect_uri", ""), "invalid_redirect_uri"},
		"two":              {c.authorizePath() + "&redirect_uri=" + url.QueryEscape("https://evil.example/"), "invalid_redirect_uri"},
		"two states":       {c.authorizePath() + "&state=other", "invalid_request"},
		"too long":         {c.authorizePath("state", strings.Repeat("s", 4000)), "invalid_request"},
		"not decodable":    {c.authorizePath() + "&%zz", "invalid_request"},
		"wrong everywhere": {c.authorizePath("client_id", "x", "redirect_uri", "https://evil.example/", "response_type", "token"), "invalid_client"},
	} {
		b.get(tt.path).refused(t, http.StatusBadRequest, tt.code)
		req := b.request(http.MethodGet, tt.path, nil)
		req.Header.Set("Accept", "text/html")
		page := b.do(req)
		if page.StatusCode != http.StatusBadRequest || page.Header.Get("Location") != "" || !strings.Contains(page.body, "<h1>") {
			t.Errorf("%s, in a browser: %s %s", what, page.Status, page.body)
		}
		if a := b.post(tt.path, "decision", "allow", "computer", "maya"); a.StatusCode != http.StatusBadRequest || a.Header.Get("Location") != "" {
			t.Errorf("%s, posted: %s", what, a.Status)
		}
	}
}

// A client's author is told what was wrong, and so is the operator: a mistake
// looked like the person's no.
func TestAClientsMistakeIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.remote(0)
	b := r.browser()
	for path, why := range map[string]string{
		c.authorizePath("code_challenge", ""):              "code_challenge",
		c.authorizePath("code_challenge", "x"):             "43 characters",
		c.authorizePath("code_challenge_method", "plain"):  "S256",
		c.authorizePath("code_challenge_method", ""):       "S256",
		c.authorizePath("scope", "openid"):                 "connect",
		c.authorizePath("response_type", "token"):          "response_type",
		c.authorizePath() + "&code_challenge_method=plain": "S256",
	} {
		back := clientAnswer(t, b.get(path))
		if said := back.Get("error_description"); !strings.Contains(said, why) || !sayable.MatchString(said) {
			t.Errorf("%s: back with %v", path, back)
		}
		if !strings.Contains(r.logs.String(), back.Get("error_description")) {
			t.Errorf("the operator hears nothing of %q", back.Get("error_description"))
		}
	}
	b.signIn("maya@example.com", "")
	if back := clientAnswer(t, b.post(c.authorizePath(), "decision", "deny")); !strings.Contains(back.Get("error_description"), "said no") {
		t.Errorf("a no comes back as %v", back)
	}
	c.refresh("never one").refused(t, http.StatusBadRequest, "invalid_grant")
	c.exchange(strings.Repeat("x", 43)).refused(t, http.StatusBadRequest, "invalid_grant")
	for _, why := range []string{"The refresh token is unknown", "The code is unknown", "client=" + c.client.ID} {
		if !strings.Contains(r.logs.String(), why) {
			t.Errorf("the log does not say %q: %s", why, r.logs)
		}
	}
}

func specResponseType(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.remote(0)
	b := r.browser()
	for _, path := range []string{
		c.authorizePath("response_type", "token"), c.authorizePath("response_type", ""),
		c.authorizePath("response_type", "code token"), c.authorizePath() + "&response_type=code",
	} {
		back := clientAnswer(t, b.get(path))
		if back.Get("error") != "unsupported_response_type" || back.Get("state") == "" {
			t.Errorf("%s: back with %v", path, back)
		}
	}
}

// The account page says what a client was let into, where that is not all.
func TestAccountSaysForWhichApps(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.putApps(
		controlapi.App{ID: "app1", Name: "notes", Label: "Notes & <b>", Live: true},
		controlapi.App{ID: "app2", Name: "photos", Label: "Photos", Live: true},
	)
	programs.Must(t, r.svc.Agents.NoteAppGrants(t.Context(), r.owner.Computer.ID, true))
	b := r.signedIn("maya@example.com")
	c := r.remote(0)
	maya := must(r.svc.Accounts.Ensure(t.Context(), "maya@example.com"))
	for _, tt := range []struct {
		apps []string
		says string
	}{
		{apps: []string{"app1"}, says: ", <bdi dir=\"auto\">for Notes &amp; &lt;b&gt; alone</bdi>"},
		{apps: []string{"app2"}, says: "for Notes &amp; &lt;b&gt; and Photos</bdi>"},
		{},
	} {
		code := must(r.svc.Grants.Authorize(t.Context(), control.Authorization{
			ClientID: c.client.ID, RedirectURI: clientRedirect, Challenge: challenge(), Apps: tt.apps,
		}, maya, "maya"))
		c.exchange(code).want(t, http.StatusOK)
		page := b.get("/account").want(t, http.StatusOK).body
		if tt.apps == nil {
			if !strings.Contains(page, "Pocket Notes</bdi></b>") {
				t.Errorf("for all it says more:\n%s", page)
			}
			continue
		}
		if !strings.Contains(page, "Pocket Notes</bdi>"+", <bdi") || !strings.Contains(page, tt.says) {
			t.Errorf("for %v:\n%s", tt.apps, page)
		}
	}
}

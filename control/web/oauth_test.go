package web

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/oauth2"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv/pgtest"
)

const clientRedirect = "https://pocketnotes.example/cb?from=porchlight"

// remote is a registered OAuth client with its secret, as its developer has it.
type remote struct {
	*rig
	client control.Client
	config oauth2.Config
	ctx    context.Context // with the HTTP client that reaches the rig
}

func (r *rig) remote(style oauth2.AuthStyle, redirectURIs ...string) *remote {
	r.t.Helper()
	if len(redirectURIs) == 0 {
		redirectURIs = []string{clientRedirect}
	}
	c, secret, err := r.svc.AddClient(r.t.Context(), "Pocket Notes", redirectURIs)
	if err != nil {
		r.t.Fatal(err)
	}
	return &remote{
		rig: r, client: c,
		config: oauth2.Config{
			ClientID: c.ID, ClientSecret: secret, RedirectURL: redirectURIs[0], Scopes: []string{"connect"},
			Endpoint: oauth2.Endpoint{
				AuthURL: authURL + controlapi.PathAuthorize, TokenURL: authURL + controlapi.PathToken, AuthStyle: style,
			},
		},
		ctx: context.WithValue(r.t.Context(), oauth2.HTTPClient, &http.Client{Transport: r.transport()}),
	}
}

// authorizePath is a whole authorization request; pairs replace parameters, and
// an empty value takes one out.
func (c *remote) authorizePath(pairs ...string) string {
	q := url.Values{
		"client_id": {c.client.ID}, "redirect_uri": {c.config.RedirectURL}, "response_type": {"code"},
		"state": {"a state/with+odd&things ü"}, "code_challenge": {challenge()}, "code_challenge_method": {"S256"}, "scope": {"connect"},
	}
	for i := 0; i < len(pairs); i += 2 {
		if q.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			q.Del(pairs[i])
		}
	}
	return controlapi.PathAuthorize + "?" + q.Encode()
}

// allow has a signed-in browser press Allow and returns the code.
func (c *remote) allow(b *browser, path string) string {
	c.t.Helper()
	return c.param(b.post(path, "decision", "allow", "computer", "maya"), "code")
}

// param reads one parameter of a redirect to the client.
func (c *remote) param(a answer, name string) string {
	c.t.Helper()
	return clientAnswer(c.t, a).Get(name)
}

func clientAnswer(t testing.TB, a answer) url.Values {
	t.Helper()
	to := a.to(t)
	rest, ok := strings.CutPrefix(to, clientRedirect+"&")
	if !ok {
		t.Fatalf("led to %s", to)
	}
	return must(url.ParseQuery(rest))
}

// granted is a browser signed in as the owner, and the tokens it got for c.
func (c *remote) granted() (*browser, tokenAnswer) {
	c.t.Helper()
	b := c.browser()
	b.signIn("maya@example.com", "")
	return b, c.grant(b)
}

// grant gets tokens with the consent of a signed-in browser.
func (c *remote) grant(b *browser) tokenAnswer {
	c.t.Helper()
	return c.exchange(c.allow(b, c.authorizePath())).want(c.t, http.StatusOK).tokens(c.t)
}

// tokenAnswer is the interface's Token response.
type tokenAnswer struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int    `json:"expires_in"`
	RefreshToken string `json:"refresh_token"`
	Scope        string `json:"scope"`
	Address      string `json:"address"`
	Host         string `json:"host"`
}

func (a answer) tokens(t testing.TB) (out tokenAnswer) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// token posts a form to the token endpoint, as a program does; Basic
// authentication when basic is set.
func (c *remote) token(basic bool, pairs ...string) answer {
	c.t.Helper()
	form := url.Values{}
	if !basic {
		form.Set("client_id", c.config.ClientID)
		form.Set("client_secret", c.config.ClientSecret)
	}
	for i := 0; i < len(pairs); i += 2 {
		if form.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			form.Del(pairs[i])
		}
	}
	req := c.tokenRequest(form.Encode())
	if basic {
		req.SetBasicAuth(c.config.ClientID, c.config.ClientSecret)
	}
	return c.browser().do(req)
}

func (c *remote) tokenRequest(body string) *http.Request {
	req := c.browser().request(http.MethodPost, controlapi.PathToken, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return req
}

func (c *remote) exchange(code string, pairs ...string) answer {
	c.t.Helper()
	return c.token(false, append([]string{
		"grant_type", "authorization_code", "code", code, "redirect_uri", c.config.RedirectURL, "code_verifier", verifier,
	}, pairs...)...)
}

func (c *remote) refresh(token string, pairs ...string) answer {
	c.t.Helper()
	return c.token(false, append([]string{"grant_type", "refresh_token", "refresh_token", token}, pairs...)...)
}

// refused checks an error: {error: code} and nothing else.
func (a answer) refused(t testing.TB, status int, code string) {
	t.Helper()
	if want := `{"error":"` + code + `"}`; strings.TrimSpace(a.body) != want || a.StatusCode != status {
		t.Errorf("%s %s: %d %s, want %d %s", a.Request.Method, a.Request.URL.Path, a.StatusCode, a.body, status, want)
	}
	if a.Header.Get("Content-Type") != "application/json" || a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers of an error: %v", a.Header)
	}
	if basic := a.Request.Header.Get("Authorization") != ""; code == "invalid_client" && basic != (a.Header.Get("WWW-Authenticate") != "") {
		t.Errorf("WWW-Authenticate: %v", a.Header)
	}
}

func TestSpec(t *testing.T) {
	t.Parallel()
	t.Run("O1_authorize_parameters", specAuthorizeParameters)
	t.Run("O2_signs_in_and_comes_back", specSignInAndBack)
	t.Run("O3_consent_names_the_app", specConsent)
	t.Run("O4_approval_returns_code_and_state", specApproval)
	t.Run("O5_denial", specDenial)
	t.Run("O6_never_redirects_to_strangers", specNoRedirect)
	t.Run("O7_unsupported_response_type", specResponseType)
	t.Run("O8_token_response", specTokenResponse)
	t.Run("O9_secret_always", specSecretAlways)
	t.Run("O10_code_is_bound", specCodeBound)
	t.Run("O11_O12_refresh_and_replay", specRefreshAndReplay)
	t.Run("O13_revoked_grant", specRevokedGrant)
	t.Run("O14_unsupported_grant_type_invalid_client", specClientErrors)
	t.Run("O15_access_token", specAccessToken)
	t.Run("O17_permissive_CORS", specCORS)
}

// The whole flow by a client library nobody here wrote, in both ways it can
// authenticate and in the way it finds out which.
func TestOAuth2Library(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser()
	b.signIn("maya@example.com", "")
	for _, style := range []oauth2.AuthStyle{oauth2.AuthStyleAutoDetect, oauth2.AuthStyleInHeader, oauth2.AuthStyleInParams} {
		c := r.remote(style)
		proof := oauth2.GenerateVerifier()
		address := c.config.AuthCodeURL("xyz", oauth2.S256ChallengeOption(proof))
		back := clientAnswer(t, b.post(strings.TrimPrefix(address, authURL), "decision", "allow", "computer", "maya"))
		if back.Get("state") != "xyz" {
			t.Errorf("state %q", back.Get("state"))
		}
		token, err := c.config.Exchange(c.ctx, back.Get("code"), oauth2.VerifierOption(proof))
		if err != nil {
			t.Fatalf("style %d: %v", style, err)
		}
		if token.Extra("host") != r.owner.Computer.Host || token.Extra("address") != r.owner.Computer.URL {
			t.Errorf("host %v, address %v", token.Extra("host"), token.Extra("address"))
		}
		old := *token
		token.Expiry = time.Now().Add(-time.Minute)
		fresh, err := c.config.TokenSource(c.ctx, token).Token()
		if err != nil || fresh.AccessToken == old.AccessToken || fresh.RefreshToken == old.RefreshToken {
			t.Fatalf("refreshed: %v", err)
		}
		_, err = c.config.TokenSource(c.ctx, &oauth2.Token{RefreshToken: old.RefreshToken}).Token()
		var refusal *oauth2.RetrieveError
		if !errors.As(err, &refusal) || refusal.ErrorCode != "invalid_grant" {
			t.Errorf("replay: %v", err)
		}
	}
}

func specAuthorizeParameters(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.remote(0)
	b := r.browser()
	b.signIn("maya@example.com", "")
	b.get(c.authorizePath()).want(t, http.StatusOK)
	b.get(c.authorizePath("scope", "", "prompt", "consent", "resource", "x")).want(t, http.StatusOK)
	b.get(c.authorizePath("state", "")).want(t, http.StatusOK)
	for what, path := range map[string]string{
		"no challenge":        c.authorizePath("code_challenge", ""),
		"a malformed one":     c.authorizePath("code_challenge", "short"),
		"padded":              c.authorizePath("code_challenge", challenge()+"="),
		"no method":           c.authorizePath("code_challenge_method", ""),
		"plain":               c.authorizePath("code_challenge_method", "plain"),
		"another scope":       c.authorizePath("scope", "openid"),
		"more scopes":         c.authorizePath("scope", "connect openid"),
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
		if back.Get("error") != "access_denied" || back.Has("code") || back.Get("state") != "a state/with+odd&things ü" {
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
	if !strings.Contains(page.body, "to connect <b>Pocket Notes</b>") {
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
	own := must(r.svc.EnsureComputer(t.Context(), "bob@example.com", "bob"))
	owner, bob, carol := r.browser(), r.browser(), r.browser()
	owner.signIn("maya@example.com", "")
	bob.signIn("bob@example.com", "")

	page := owner.get(c.authorizePath()).want(t, http.StatusOK)
	golden(t, "consent", page.body)
	if csp := page.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "form-action 'self' https://pocketnotes.example;") {
		t.Errorf("the redirect to the client would be blocked: %s", csp)
	}
	golden(t, "consent-choice", bob.get(c.authorizePath()).want(t, http.StatusOK).body)

	// With a choice to make, no answer is no choice; another's computer is none.
	golden(t, "consent-again", bob.post(c.authorizePath(), "decision", "allow").want(t, http.StatusBadRequest).body)
	if must(r.svc.EnsureComputer(t.Context(), "zoe@example.com", "zoe")).Computer.Name != "zoe" {
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
	if _, err := r.svc.EnsureAccount(t.Context(), "carol@example.com"); err != nil {
		t.Fatal(err)
	}
	carol.signIn("carol@example.com", "")
	golden(t, "consent-nothing", carol.get(c.authorizePath()).want(t, http.StatusForbidden).body)
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
	b := r.browser()
	b.signIn("maya@example.com", "")
	a := b.post(c.authorizePath(), "decision", "allow", "computer", "maya")
	back := clientAnswer(t, a)
	if len(back.Get("code")) != 43 || back.Get("state") != "a state/with+odd&things ü" || len(back) != 2 {
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
	if to := b.post(native.authorizePath(), "decision", "allow").to(t); !strings.HasPrefix(to, "com.example.notes:/cb?code=") {
		t.Errorf("led to %s", to)
	}
}

func specDenial(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.remote(0)
	b := r.browser()
	b.signIn("maya@example.com", "")
	back := clientAnswer(t, b.post(c.authorizePath(), "decision", "deny", "computer", "maya"))
	if back.Get("error") != "access_denied" || back.Get("state") != "a state/with+odd&things ü" || back.Has("code") {
		t.Errorf("back with %v", back)
	}
}

func specNoRedirect(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.remote(0)
	b := r.browser()
	b.signIn("maya@example.com", "")
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

func specTokenResponse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.remote(0)
	b := r.browser()
	b.signIn("maya@example.com", "")
	a := c.exchange(c.allow(b, c.authorizePath())).want(t, http.StatusOK)
	var raw map[string]any
	if err := json.Unmarshal([]byte(a.body), &raw); err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(raw))
	if !slices.Equal(names, []string{"access_token", "address", "expires_in", "host", "refresh_token", "scope", "token_type"}) {
		t.Errorf("fields %v", names)
	}
	got := a.tokens(t)
	if got.TokenType != "Bearer" || got.ExpiresIn != 600 || got.Scope != "connect" ||
		got.Address != "https://maya.localhost:8443" || got.Host != "maya.localhost:8443" {
		t.Errorf("got %+v", got)
	}
	if a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", a.Header)
	}
	again := c.refresh(got.RefreshToken).want(t, http.StatusOK).tokens(t)
	if again.AccessToken == got.AccessToken || again.RefreshToken == got.RefreshToken {
		t.Error("the refreshed pair is the old one")
	}
	got.AccessToken, got.RefreshToken = again.AccessToken, again.RefreshToken
	if again != got {
		t.Errorf("refreshed %+v, before %+v", again, got)
	}
}

func specSecretAlways(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, other := r.remote(0), r.remote(0)
	b, tokens := c.granted()
	code := c.allow(b, c.authorizePath())
	for what, pairs := range map[string][]string{
		"no secret":              {"client_secret", ""},
		"a wrong one":            {"client_secret", strings.Repeat("A", 43)},
		"another client's":       {"client_secret", other.config.ClientSecret},
		"no id for a code":       {"client_id", ""},
		"an unknown id":          {"client_id", strings.Repeat("a", 26)},
		"no credentials, really": {"client_id", "", "client_secret", ""},
	} {
		c.exchange(code, pairs...).refused(t, http.StatusBadRequest, "invalid_client")
		if what != "no id for a code" {
			c.refresh(tokens.RefreshToken, pairs...).refused(t, http.StatusBadRequest, "invalid_client")
		}
	}
	for _, header := range []string{"Basic !", "Basic " + "Og==", "Bearer " + tokens.AccessToken, "Basic"} {
		req := c.tokenRequest("grant_type=refresh_token&refresh_token=" + tokens.RefreshToken)
		req.Header.Set("Authorization", header)
		r.browser().do(req).refused(t, http.StatusUnauthorized, "invalid_client")
	}
	two := c.tokenRequest("grant_type=refresh_token&client_secret=" + c.config.ClientSecret + "&refresh_token=" + tokens.RefreshToken)
	two.SetBasicAuth(c.config.ClientID, c.config.ClientSecret)
	r.browser().do(two).refused(t, http.StatusUnauthorized, "invalid_client")

	// Nothing of it used anything up. A refresh may leave the id out: the token
	// says whose it is.
	c.exchange(code).want(t, http.StatusOK)
	next := c.refresh(tokens.RefreshToken, "client_id", "").want(t, http.StatusOK).tokens(t)
	c.token(true, "grant_type", "refresh_token", "refresh_token", next.RefreshToken).want(t, http.StatusOK)
}

func specCodeBound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, other := r.remote(0), r.remote(0)
	b := r.browser()
	b.signIn("maya@example.com", "")
	refused := func(what string, a answer) {
		t.Helper()
		if a.StatusCode != http.StatusBadRequest || strings.TrimSpace(a.body) != `{"error":"invalid_grant"}` {
			t.Errorf("%s: %s %s", what, a.Status, a.body)
		}
	}
	code := c.allow(b, c.authorizePath())
	refused("another client", other.exchange(code))
	c.exchange(code).want(t, http.StatusOK)
	refused("the second use", c.exchange(code))
	for what, pairs := range map[string][]string{
		"another redirect URI": {"redirect_uri", "https://pocketnotes.example/other"},
		"another verifier":     {"code_verifier", strings.Repeat("x", 43)},
		"the challenge":        {"code_verifier", challenge()},
	} {
		code := c.allow(b, c.authorizePath())
		refused(what, c.exchange(code, pairs...))
		refused(what+", and then rightly", c.exchange(code))
	}
	// What is incomplete uses nothing up: there was nothing to compare.
	code = c.allow(b, c.authorizePath())
	for what, pairs := range map[string][]string{
		"no code":             {"code", ""},
		"no redirect URI":     {"redirect_uri", ""},
		"no verifier":         {"code_verifier", ""},
		"a short verifier":    {"code_verifier", strings.Repeat("x", 42)},
		"a long verifier":     {"code_verifier", strings.Repeat("x", 129)},
		"another scope":       {"scope", "openid"},
		"a code out of shape": {"code", "x"},
	} {
		refused(what, c.exchange(code, pairs...))
	}
	c.exchange(code, "scope", "connect").want(t, http.StatusOK)
}

// Of 64 uses at once of one code, and of one refresh token, one wins, whatever
// the store.
func TestOneWinner(t *testing.T) {
	t.Parallel()
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := open(t)
			c := r.remote(0)
			b := r.browser()
			b.signIn("maya@example.com", "")
			code := c.allow(b, c.authorizePath())
			if won := race(64, func() bool { return c.exchange(code).StatusCode == http.StatusOK }); won != 1 {
				t.Errorf("%d of 64 got tokens for one code", won)
			}
			if n := len(must(r.svc.AccountGrants(t.Context(), r.owner.AccountID))); n != 1 {
				t.Errorf("%d grants", n)
			}
			tokens := c.grant(b)
			if won := race(64, func() bool { return c.refresh(tokens.RefreshToken).StatusCode == http.StatusOK }); won != 1 {
				t.Errorf("%d of 64 got tokens for one refresh token", won)
			}
		})
	}
}

// Two nodes on one database are one control plane: a code of one is exchanged at
// the other, and once the one has answered that a grant is revoked, the other
// refreshes nothing, however it raced.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	shared := func(c *control.Config) { c.SharedStore = true }
	one, two := newRigOn(t, postgresStore(t, database), shared), newRigOn(t, postgresStore(t, database), shared)
	c := one.remote(0)
	there := *c
	there.rig = two
	b := one.browser()
	b.signIn("maya@example.com", "")
	tokens := there.exchange(c.allow(b, c.authorizePath())).want(t, http.StatusOK).tokens(t)

	var answered atomic.Bool
	var wrong, before atomic.Int64
	var wg sync.WaitGroup
	began := make(chan struct{})
	wg.Go(func() {
		token := tokens.RefreshToken
		for range 1000 {
			late := answered.Load()
			a := there.refresh(token)
			switch {
			case a.StatusCode == http.StatusOK && late:
				wrong.Add(1)
				fallthrough
			case a.StatusCode == http.StatusOK:
				token = a.tokens(t).RefreshToken
				if before.Add(1) == 20 {
					close(began)
				}
			case strings.TrimSpace(a.body) != `{"error":"access_denied"}`:
				t.Errorf("refresh: %s %s", a.Status, a.body)
			}
		}
	})
	<-began
	b.post("/account/grants/revoke", "grant", claims(t, tokens.AccessToken)["grant"].(string)).want(t, http.StatusSeeOther)
	answered.Store(true)
	wg.Wait()
	if wrong.Load() != 0 || before.Load() == 1000 {
		t.Errorf("%d refreshes after the revocation had answered, %d in all", wrong.Load(), before.Load())
	}
}

// race runs fn n times at once and counts the successes.
func race(n int, fn func() bool) int {
	var won atomic.Int64
	var wg sync.WaitGroup
	start := make(chan struct{})
	for range n {
		wg.Go(func() {
			<-start
			if fn() {
				won.Add(1)
			}
		})
	}
	close(start)
	wg.Wait()
	return int(won.Load())
}

func specRefreshAndReplay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, other := r.remote(0), r.remote(0)
	_, first := c.granted()
	second := c.refresh(first.RefreshToken).want(t, http.StatusOK).tokens(t)
	// The old one is dead at once, again and again, and the new one is not hurt.
	for range 3 {
		c.refresh(first.RefreshToken).refused(t, http.StatusBadRequest, "invalid_grant")
	}
	if r.svc.Replays() != 3 || strings.Count(r.logs.String(), "presented again") != 3 {
		t.Errorf("%d replays counted, log %s", r.svc.Replays(), r.logs)
	}
	other.refresh(second.RefreshToken).refused(t, http.StatusBadRequest, "invalid_grant")
	for _, token := range []string{"", "x", "x.y", strings.Repeat("a", 26) + "." + strings.Repeat("A", 43), second.AccessToken, second.RefreshToken + "A"} {
		c.refresh(token).refused(t, http.StatusBadRequest, "invalid_grant")
	}
	c.refresh(second.RefreshToken).want(t, http.StatusOK)
	if log := r.logs.String(); strings.Contains(log, first.RefreshToken) || strings.Contains(log, second.AccessToken) ||
		strings.Contains(log, c.config.ClientSecret) {
		t.Error("a secret is in the log")
	}
}

func specRevokedGrant(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.remote(0)
	b := r.browser()
	b.signIn("maya@example.com", "")
	for name, revoke := range map[string]func(b *browser, grant string){
		"on the account page": func(b *browser, grant string) {
			page := b.get("/account").want(t, http.StatusOK)
			if !strings.Contains(page.body, "Pocket Notes") || !strings.Contains(page.body, `value="`+grant+`"`) {
				t.Errorf("the account page shows no connected app:\n%s", page.body)
			}
			if to := b.post("/account/grants/revoke", "grant", grant).to(t); to != "/account" {
				t.Errorf("led to %s", to)
			}
			if page := b.get("/account"); strings.Contains(page.body, grant) {
				t.Error("the account page still shows it")
			}
		},
		"by the owner's computer": func(_ *browser, grant string) {
			list := must(r.client().OAuthGrants(t.Context()))
			if !slices.ContainsFunc(list, func(g controlapi.OAuthGrant) bool {
				return g.ID == grant && g.ClientName == "Pocket Notes" && g.ClientID == c.client.ID && g.Email == "maya@example.com" && !g.CreatedAt.IsZero()
			}) {
				t.Errorf("the computer hears of %+v", list)
			}
			for range 2 {
				if err := r.client().RevokeOAuthGrant(t.Context(), grant); err != nil {
					t.Error(err)
				}
			}
		},
	} {
		first := c.grant(b)
		second := c.refresh(first.RefreshToken).want(t, http.StatusOK).tokens(t)
		grant := claims(t, second.AccessToken)["grant"].(string)
		watch := r.svc.Watch(r.owner.Computer.ID)
		revoke(b, grant)
		for _, token := range []string{second.RefreshToken, first.RefreshToken} {
			c.refresh(token).refused(t, http.StatusBadRequest, "access_denied")
		}
		<-watch.Changed // the agent's held sync is answered
		watch.Stop()
		snapshot := must(r.client().Sync(t.Context(), ""))
		if !slices.ContainsFunc(snapshot.RevokedGrants, func(g controlapi.RevokedGrant) bool { return g.ID == grant && !g.At.IsZero() }) {
			t.Errorf("%s: the agent hears of %+v", name, snapshot.RevokedGrants)
		}
	}

	// Nobody else's business.
	tokens := c.grant(b)
	grant := claims(t, tokens.AccessToken)["grant"].(string)
	r.member("bob@example.com", "app1")
	bob := r.browser()
	bob.signIn("bob@example.com", "")
	bob.post("/account/grants/revoke", "grant", grant).want(t, http.StatusNotFound)
	if to := r.browser().post("/account/grants/revoke", "grant", grant).to(t); !strings.HasPrefix(to, "/signin") {
		t.Errorf("signed out, led to %s", to)
	}
	stranger := r.client()
	stranger.Credential = must(r.svc.EnsureComputer(t.Context(), "zoe@example.com", "zoe")).Credential
	var refusal *controlapi.Error
	if err := stranger.RevokeOAuthGrant(t.Context(), grant); !errors.As(err, &refusal) || refusal.Code != controlapi.CodeNotFound {
		t.Errorf("another computer: %v", err)
	}
	if list := must(stranger.OAuthGrants(t.Context())); len(list) != 0 {
		t.Errorf("another computer hears of %+v", list)
	}
	stranger.Credential = tokens.AccessToken
	if _, err := stranger.OAuthGrants(t.Context()); !errors.As(err, &refusal) || refusal.Code != controlapi.CodeUnauthorized {
		t.Errorf("an access token as device credential: %v", err)
	}
	c.refresh(tokens.RefreshToken).want(t, http.StatusOK)
}

func specClientErrors(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.remote(0)
	_, tokens := c.granted()
	for _, grant := range []string{"", "password", "client_credentials", "Refresh_token"} {
		c.refresh(tokens.RefreshToken, "grant_type", grant).refused(t, http.StatusBadRequest, "unsupported_grant_type")
	}
	wrong := c.tokenRequest("grant_type=refresh_token&refresh_token=" + tokens.RefreshToken)
	wrong.SetBasicAuth(c.config.ClientID, "wrong")
	r.browser().do(wrong).refused(t, http.StatusUnauthorized, "invalid_client")

	form := "grant_type=refresh_token&client_id=" + c.config.ClientID + "&client_secret=" + c.config.ClientSecret + "&refresh_token=" + tokens.RefreshToken
	for _, name := range []string{"grant_type=refresh_token", "client_id=x", "client_secret=x", "refresh_token=x", "scope=connect&scope=connect"} {
		r.browser().do(c.tokenRequest(form+"&"+name)).refused(t, http.StatusBadRequest, "invalid_grant")
	}
	r.browser().do(c.tokenRequest(form+"&%zz=1")).refused(t, http.StatusBadRequest, "invalid_grant")
	r.browser().do(c.tokenRequest(form+"&padding="+strings.Repeat("x", 20<<10))).refused(t, http.StatusRequestEntityTooLarge, "invalid_request")
	for _, kind := range []string{"application/json", "", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded; ;"} {
		req := c.tokenRequest(form)
		req.Header.Set("Content-Type", kind)
		r.browser().do(req).refused(t, http.StatusUnsupportedMediaType, "invalid_request")
	}
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		a := r.browser().do(r.browser().request(method, controlapi.PathToken+"?"+form, nil))
		a.refused(t, http.StatusMethodNotAllowed, "invalid_request")
		if a.Header.Get("Allow") != "POST, OPTIONS" {
			t.Errorf("Allow %q", a.Header.Get("Allow"))
		}
	}
	// In the address they do not count.
	req := c.tokenRequest("grant_type=refresh_token")
	req.URL.RawQuery = form
	r.browser().do(req).refused(t, http.StatusBadRequest, "invalid_client")

	// A removed client has nothing left; a rotated one only its new secret.
	old := c.config.ClientSecret
	c.config.ClientSecret = must(r.svc.RotateClient(t.Context(), c.client.ID))
	c.refresh(tokens.RefreshToken, "client_secret", old).refused(t, http.StatusBadRequest, "invalid_client")
	tokens = c.refresh(tokens.RefreshToken).want(t, http.StatusOK).tokens(t)
	if err := r.svc.RemoveClient(t.Context(), c.client.ID); err != nil {
		t.Fatal(err)
	}
	c.refresh(tokens.RefreshToken).refused(t, http.StatusBadRequest, "invalid_client")
}

// claims of a token, unverified.
func claims(t testing.TB, token string) jwt.MapClaims {
	t.Helper()
	out := jwt.MapClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(token, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func specAccessToken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.remote(0)
	_, tokens := c.granted()
	public := must(r.client().PublicKey(t.Context())).PublicKey
	key := must(jwt.ParseEdPublicKeyFromPEM([]byte(public)))
	token, err := jwt.Parse(tokens.AccessToken, func(*jwt.Token) (any, error) { return key, nil }, jwt.WithValidMethods([]string{"EdDSA"}),
		jwt.WithIssuer("service-control"), jwt.WithAudience("maya.localhost:8443"), jwt.WithExpirationRequired(), jwt.WithIssuedAt())
	if err != nil {
		t.Fatal(err)
	}
	if token.Header["alg"] != "EdDSA" || token.Header["typ"] != "JWT" {
		t.Errorf("header %v", token.Header)
	}
	got := token.Claims.(jwt.MapClaims)
	names := slices.Sorted(maps.Keys(got))
	if !slices.Equal(names, []string{"aud", "client_id", "email", "exp", "grant", "iat", "iss", "jti", "scope", "sub"}) {
		t.Errorf("claims %v", names)
	}
	if got["sub"] != r.owner.AccountID || got["email"] != "maya@example.com" || got["client_id"] != c.client.ID ||
		got["scope"] != "connect" || got["aud"] != "maya.localhost:8443" || got["grant"] == "" ||
		got["exp"].(float64) != got["iat"].(float64)+600 {
		t.Errorf("claims %v", got)
	}
	next := claims(t, c.refresh(tokens.RefreshToken).tokens(t).AccessToken)
	if next["jti"] == got["jti"] || next["jti"] == "" || next["grant"] != got["grant"] {
		t.Errorf("the next token has %v", next)
	}

	// A verifier that has nothing in common with Go's.
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Fatal("this test needs openssl: apt-get install openssl")
	}
	dir := t.TempDir()
	signed, signature, _ := cutLast(tokens.AccessToken, ".")
	raw := must(jwt.NewParser().DecodeSegment(signature))
	for name, content := range map[string][]byte{"key.pem": []byte(public), "signed": []byte(signed), "signature": raw, "forged": []byte(signed + "x")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	verify := func(file string) error {
		cmd := exec.CommandContext(t.Context(), openssl, "pkeyutl", "-verify", "-pubin", "-inkey", "key.pem", "-rawin", "-in", file, "-sigfile", "signature")
		cmd.Dir = dir
		return cmd.Run()
	}
	if err := verify("signed"); err != nil {
		t.Errorf("openssl does not verify it: %v", err)
	}
	if verify("forged") == nil {
		t.Error("openssl verifies anything")
	}
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	return s[:i], s[i+len(sep):], i >= 0
}

func specCORS(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.remote(0)
	_, tokens := c.granted()
	permissive := func(a answer, method string) {
		t.Helper()
		h := a.Header
		if h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Access-Control-Allow-Headers") != "Authorization, Content-Type" ||
			!strings.Contains(h.Get("Access-Control-Allow-Methods"), method) || h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s %s: %v", a.Request.Method, a.Request.URL.Path, h)
		}
	}
	for path, method := range map[string]string{controlapi.PathToken: "POST", controlapi.PathPublicKey: "GET"} {
		req := r.browser().request(http.MethodOptions, path, nil)
		req.Header.Set("Origin", "https://pocketnotes.example")
		req.Header.Set("Access-Control-Request-Method", method)
		req.Header.Set("Access-Control-Request-Headers", "authorization")
		permissive(r.browser().do(req).want(t, http.StatusNoContent), method)
	}
	for i, token := range []string{tokens.RefreshToken, "wrong"} {
		req := c.tokenRequest(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}}.Encode())
		req.SetBasicAuth(c.config.ClientID, c.config.ClientSecret)
		req.Header.Set("Origin", "https://pocketnotes.example")
		req.Header.Set("Sec-Fetch-Site", "cross-site")
		permissive(r.browser().do(req).want(t, []int{200, 400}[i]), "POST")
	}
	permissive(r.browser().get(controlapi.PathPublicKey).want(t, http.StatusOK), "GET")
}

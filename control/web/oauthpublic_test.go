package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// public is a registered client that has no secret.
func (r *rig) public(redirectURIs ...string) *remote {
	r.t.Helper()
	c := r.remote(oauth2.AuthStyleInParams)
	made := programs.Got(r.svc.Clients.AddPublic(r.t.Context(), "Pocket Editor", redirectURIs))(r.t)
	c.client, c.config.ClientID, c.config.ClientSecret, c.config.RedirectURL = made, made.ID, "", redirectURIs[0]
	return c
}

// codeAt has the owner allow a client to answer at a redirect URI, and returns the code
// that goes there.
func (c *remote) codeAt(b *browser, redirectURI string) string {
	c.t.Helper()
	to := b.post(c.authorizePath("redirect_uri", redirectURI), "decision", "allow", "app", "maya/*").to(c.t)
	u := must(url.Parse(to))
	if !strings.HasPrefix(to, redirectURI+"?") || u.Query().Get("iss") != authURL {
		c.t.Errorf("asked to go to %s, led to %s", redirectURI, to)
	}
	return u.Query().Get("code")
}

// A program without a secret listens at whatever port is free, is asked about each time,
// and proves itself by what it began alone.
func TestPublicClient(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.public("http://127.0.0.1/cb", "http://[::1]/cb", "cursor://anysphere/cb")
	b := r.signedIn("maya@example.com")
	const here = "http://127.0.0.1:49152/cb"
	for redirect, want := range map[string]struct{ source, target string }{
		here:                    {"http://127.0.0.1:49152", "a program on your own computer"},
		"http://127.0.0.1/cb":   {"http://127.0.0.1", "a program on your own computer"},
		"http://[::1]:49152/cb": {"http:", "a program on your own computer"},
		"cursor://anysphere/cb": {"cursor:", "the app on this device"},
	} {
		for range 2 { // what was allowed once is asked again
			page := b.get(c.authorizePath("redirect_uri", redirect)).want(t, http.StatusOK)
			if csp := page.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "form-action 'self' "+want.source+";") {
				t.Errorf("%s: policy %s", redirect, csp)
			}
			if !strings.Contains(page.body, "Afterwards you go to <b>"+want.target+"</b>.") {
				t.Errorf("%s: it does not say where it leads: %s", redirect, page.body)
			}
			c.exchange(c.codeAt(b, redirect), "redirect_uri", redirect).want(t, http.StatusOK)
		}
	}
	german := b.request(http.MethodGet, c.authorizePath("redirect_uri", here), nil)
	german.Header.Set("Accept-Language", "de")
	if page := b.do(german).want(t, http.StatusOK); !strings.Contains(page.body, "Danach geht es zu <b>einem Programm auf Ihrem eigenen Computer</b>.") {
		t.Errorf("in German it does not say where it leads: %s", page.body)
	}

	// The code is bound to the port that was used, and to the verifier.
	for what, pairs := range map[string][]string{
		"as registered":   {"redirect_uri", "http://127.0.0.1/cb"},
		"another port":    {"redirect_uri", "http://127.0.0.1:49153/cb"},
		"no verifier fit": {"redirect_uri", here, "code_verifier", strings.Repeat("x", 43)},
	} {
		code := c.codeAt(b, here)
		if a := c.exchange(code, pairs...); !a.says("invalid_grant") {
			t.Errorf("%s: %s %s", what, a.Status, a.body)
		}
		c.exchange(code, "redirect_uri", here).refused(t, http.StatusBadRequest, "invalid_grant")
	}

	// A secret is none of its, wherever it stands; and nothing is used up by it.
	confidential := r.remote(0)
	code := c.codeAt(b, here)
	for _, secret := range []string{"x", strings.Repeat("x", 43), confidential.config.ClientSecret} {
		c.exchange(code, "redirect_uri", here, "client_secret", secret).refused(t, http.StatusBadRequest, "invalid_client")
	}
	for _, secret := range []string{"", confidential.config.ClientSecret} {
		req := c.tokenRequest(url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {here}, "code_verifier": {verifier}}.Encode())
		req.SetBasicAuth(c.config.ClientID, secret)
		r.browser().do(req).refused(t, http.StatusUnauthorized, "invalid_client")
	}
	c.exchange(code, "redirect_uri", here, "client_id", "").refused(t, http.StatusBadRequest, "invalid_client")
	first := c.exchange(code, "redirect_uri", here).want(t, http.StatusOK).tokens(t)

	// Refreshing: with its id alone, and not without; the token before is over at once.
	c.refresh(first.RefreshToken, "client_id", "").refused(t, http.StatusBadRequest, "invalid_client")
	c.refresh(first.RefreshToken, "client_id", "", "client_secret", confidential.config.ClientSecret).refused(t, http.StatusBadRequest, "invalid_client")
	second := c.refresh(first.RefreshToken).want(t, http.StatusOK).tokens(t)
	c.refresh(first.RefreshToken).refused(t, http.StatusBadRequest, "invalid_grant")
	second = c.refresh(second.RefreshToken, "client_secret", "").want(t, http.StatusOK).tokens(t)

	// Removed, it is asked about no more and has nothing left.
	programs.Must(t, r.svc.Clients.Remove(t.Context(), c.client.ID))
	c.refresh(second.RefreshToken).refused(t, http.StatusBadRequest, "invalid_client")
	b.get(c.authorizePath("redirect_uri", here)).refused(t, http.StatusBadRequest, "invalid_client")
}

// For a confidential client everything is as it was, letter for letter.
func TestConfidentialClientIsAsBefore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.remote(0, "http://127.0.0.1:7777/cb")
	b := r.signedIn("maya@example.com")
	for _, uri := range []string{"http://127.0.0.1:7778/cb", "http://127.0.0.1/cb", "http://[::1]:7777/cb"} {
		b.get(c.authorizePath("redirect_uri", uri)).refused(t, http.StatusBadRequest, "invalid_redirect_uri")
	}
	code := c.codeAt(b, c.config.RedirectURL)
	a := c.exchange(code, "client_secret", "")
	if want := `{"error":"invalid_client","error_description":"The parameter client_secret is missing."}`; a.StatusCode != http.StatusBadRequest || strings.TrimSpace(a.body) != want {
		t.Errorf("without its secret: %s %s", a.Status, a.body)
	}
	tokens := c.exchange(code).want(t, http.StatusOK).tokens(t)
	c.refresh(tokens.RefreshToken, "client_secret", "").refused(t, http.StatusBadRequest, "invalid_client")
	c.refresh(tokens.RefreshToken).want(t, http.StatusOK)
}

// revoke posts a token to the revocation endpoint, as a program does.
func (c *remote) revoke(token string, pairs ...string) answer {
	c.t.Helper()
	form := url.Values{"token": {token}, "client_id": {c.config.ClientID}}
	if c.config.ClientSecret != "" {
		form.Set("client_secret", c.config.ClientSecret)
	}
	for i := 0; i < len(pairs); i += 2 {
		if form.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			form.Del(pairs[i])
		}
	}
	req := c.tokenRequest(form.Encode())
	req.URL.Path = controlapi.PathRevoke
	return c.browser().do(req)
}

// A client that is signed out of gives its token back (RFC 7009): the agent hears of it as
// of the person's own revoke, and whatever is not its own changes nothing.
func TestRevocation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn("maya@example.com")
	editor := r.public(clientRedirect)
	for what, c := range map[string]*remote{"public": editor, "confidential": r.remote(0)} {
		left := c.grant(b)
		for _, hint := range []string{"refresh_token", "access_token", "of no kind"} {
			tokens := c.grant(b)
			token := map[string]string{"access_token": tokens.AccessToken}[hint]
			if token == "" {
				token = tokens.RefreshToken
			}
			_, next := r.waitForNext()
			a := c.revoke(token, "token_type_hint", hint).want(t, http.StatusOK)
			if a.body != "" || a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("Access-Control-Allow-Origin") != "*" {
				t.Errorf("%s: %v %q", what, a.Header, a.body)
			}
			grant := claims(t, tokens.AccessToken)["grant"].(string)
			if snapshot := <-next; !slices.ContainsFunc(snapshot.RevokedGrants, func(g controlapi.RevokedGrant) bool { return g.ID == grant }) {
				t.Errorf("%s, %s: the agent hears of %+v", what, hint, snapshot.RevokedGrants)
			}
			c.refresh(tokens.RefreshToken).refused(t, http.StatusBadRequest, "access_denied")
			c.revoke(token).want(t, http.StatusOK)
		}
		left = c.refresh(left.RefreshToken).want(t, http.StatusOK).tokens(t)

		r.remote(0).revoke(left.RefreshToken).want(t, http.StatusOK)
		r.public("http://127.0.0.1/cb").revoke(left.AccessToken).want(t, http.StatusOK)
		c.revoke("unknown").want(t, http.StatusOK)
		c.revoke(left.RefreshToken, "client_secret", "wrong").refused(t, http.StatusBadRequest, "invalid_client")
		c.revoke(left.RefreshToken, "client_id", "").refused(t, http.StatusBadRequest, "invalid_client")
		c.revoke("").refused(t, http.StatusBadRequest, "invalid_grant")
		c.revoke(left.RefreshToken, "padding", strings.Repeat("x", 20<<10)).refused(t, http.StatusRequestEntityTooLarge, "invalid_request")
		twice := c.tokenRequest(url.Values{"token": {left.RefreshToken, "x"}, "client_id": {c.config.ClientID}, "client_secret": {c.config.ClientSecret}}.Encode())
		twice.URL.Path = controlapi.PathRevoke
		r.browser().do(twice).refused(t, http.StatusBadRequest, "invalid_grant")
		c.refresh(left.RefreshToken).want(t, http.StatusOK)
	}
	r.browser().do(r.browser().request(http.MethodGet, controlapi.PathRevoke, nil)).refused(t, http.StatusMethodNotAllowed, "invalid_request")
	basic := r.remote(0)
	req := basic.tokenRequest("token=" + basic.grant(b).RefreshToken)
	req.URL.Path = controlapi.PathRevoke
	req.SetBasicAuth(basic.config.ClientID, "wrong")
	r.browser().do(req).refused(t, http.StatusUnauthorized, "invalid_client")
}

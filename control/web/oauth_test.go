package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
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
	c, secret, err := r.svc.Clients.Add(r.t.Context(), "Pocket Notes", redirectURIs)
	programs.Must(r.t, err)
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
	return c.param(b.post(path, "decision", "allow", "computer", "maya", "app", "maya/*"), "code")
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
	back := must(url.ParseQuery(rest))
	if iss := back["iss"]; len(iss) != 1 || iss[0] != authURL {
		t.Errorf("it says to come from %q", iss)
	}
	return back
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

// tokenAnswer is the answer of the token endpoint (O8).
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
	programs.Must(t, json.Unmarshal([]byte(a.body), &out))
	return out
}

// token posts a form to the token endpoint, as a program does; Basic
// authentication when basic is set.
func (c *remote) token(basic bool, pairs ...string) answer {
	c.t.Helper()
	form := url.Values{}
	if !basic {
		form.Set("client_id", c.config.ClientID)
		if c.config.ClientSecret != "" {
			form.Set("client_secret", c.config.ClientSecret)
		}
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

// sayable is what an error may say beside its code (RFC 6749, section 5.2).
var sayable = regexp.MustCompile(`^[\x20-\x21\x23-\x5b\x5d-\x7e]{10,200}$`)

// says wants {error: code} with a description, and nothing else.
func (a answer) says(code string) bool {
	var body map[string]string
	err := json.Unmarshal([]byte(a.body), &body)
	return err == nil && len(body) == 2 && body["error"] == code && sayable.MatchString(body["error_description"])
}

// refused checks an error.
func (a answer) refused(t testing.TB, status int, code string) {
	t.Helper()
	if !a.says(code) || a.StatusCode != status {
		t.Errorf("%s %s: %d %s, want %d %s and why", a.Request.Method, a.Request.URL.Path, a.StatusCode, a.body, status, code)
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
	t.Run("M1_people_list", specPeopleList)
	t.Run("M4_invite_writes_the_grant_and_mails", specInviteWritesTheGrantAndMails)
	t.Run("M5_M6_refusals_write_nothing", specRefusalsWriteNothing)
	t.Run("M7_budget_is_shared", specBudgetIsShared)
	t.Run("M8_one_click_signs_in_and_accepts", specOneClickSignsInAndAccepts)
	t.Run("M9_grant_changes_one_app", specGrantChangesOneApp)
	t.Run("M10_M11_revoke_and_invite_again", specRevokeAndInviteAgain)
	t.Run("M12_absent_app_is_denied", specAbsentAppIsDenied)
	t.Run("M13_only_the_owners_computer", specOnlyTheOwnersComputer)
	t.Run("M14_account_id_is_opaque", specAccountIDIsOpaque)
}

// The whole flow by a client library nobody here wrote, in both ways it can
// authenticate and in the way it finds out which.
func TestOAuth2Library(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn("maya@example.com")
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

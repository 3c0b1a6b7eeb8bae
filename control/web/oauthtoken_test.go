package web

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

func specTokenResponse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.remote(0)
	b := r.signedIn("maya@example.com")
	a := c.exchange(c.allow(b, c.authorizePath())).want(t, http.StatusOK)
	var raw map[string]any
	programs.Must(t, json.Unmarshal([]byte(a.body), &raw))
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
	b := r.signedIn("maya@example.com")
	refused := func(what string, a answer) {
		t.Helper()
		if a.StatusCode != http.StatusBadRequest || !a.says("invalid_grant") {
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
		"a code out of shape": {"code", "x"},
	} {
		refused(what, c.exchange(code, pairs...))
	}
	if a := c.exchange(code, "scope", "openid"); a.StatusCode != http.StatusBadRequest || !a.says("invalid_scope") {
		t.Errorf("without connect: %s %s", a.Status, a.body)
	}
	c.exchange(code, "scope", "connect openid").want(t, http.StatusOK)
}

// Of 64 uses at once of one code, and of one refresh token, one wins, whatever
// the store. A code that was used more than once has ended what it gave.
func TestOneWinner(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, r *rig) {
		c := r.remote(0)
		b := r.signedIn("maya@example.com")
		code := c.allow(b, c.authorizePath())
		if won := race(64, func() bool { return c.exchange(code).StatusCode == http.StatusOK }); won != 1 {
			t.Errorf("%d of 64 got tokens for one code", won)
		}
		if n := len(must(r.svc.Grants.OfAccount(t.Context(), r.owner.AccountID))); n != 0 {
			t.Errorf("%d grants of a code that was used twice", n)
		}
		tokens := c.grant(b)
		if won := race(64, func() bool { return c.refresh(tokens.RefreshToken).StatusCode == http.StatusOK }); won != 1 {
			t.Errorf("%d of 64 got tokens for one refresh token", won)
		}
	})
}

// Two nodes on one database are one control plane: a code of one is exchanged at
// the other, and once the one has answered that a grant is revoked, the other
// refreshes nothing, however it raced.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	shared := func(c *control.Config) { c.SharedStore = true }
	one, two := newRigOn(t, openStore(t, database), shared), newRigOn(t, openStore(t, database), shared)
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
			case !a.says("access_denied"):
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
	if strings.Count(r.logs.String(), "presented again") != 3 {
		t.Errorf("the three replays are not in the log: %s", r.logs)
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
	b := r.signedIn("maya@example.com")
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
			list := must(r.client().Grants(t.Context()))
			if !slices.ContainsFunc(list, func(g controlapi.Grant) bool {
				return g.ID == grant && g.ClientName == "Pocket Notes" && g.ClientID == c.client.ID && g.Email == "maya@example.com" && !g.CreatedAt.IsZero()
			}) {
				t.Errorf("the computer hears of %+v", list)
			}
			for range 2 {
				if err := r.client().RevokeGrant(t.Context(), grant); err != nil {
					t.Error(err)
				}
			}
		},
	} {
		first := c.grant(b)
		second := c.refresh(first.RefreshToken).want(t, http.StatusOK).tokens(t)
		grant := claims(t, second.AccessToken)["grant"].(string)
		_, next := r.waitForNext()
		revoke(b, grant)
		for _, token := range []string{second.RefreshToken, first.RefreshToken} {
			c.refresh(token).refused(t, http.StatusBadRequest, "access_denied")
		}
		snapshot := <-next
		if !slices.ContainsFunc(snapshot.RevokedGrants, func(g controlapi.RevokedGrant) bool { return g.ID == grant && !g.At.IsZero() }) {
			t.Errorf("%s: the agent hears of %+v", name, snapshot.RevokedGrants)
		}
	}

	// Nobody else's business.
	tokens := c.grant(b)
	grant := claims(t, tokens.AccessToken)["grant"].(string)
	r.member("bob@example.com", "app1")
	bob := r.signedIn("bob@example.com")
	bob.post("/account/grants/revoke", "grant", grant).want(t, http.StatusNotFound)
	if to := r.browser().post("/account/grants/revoke", "grant", grant).to(t); !strings.HasPrefix(to, "/signin") {
		t.Errorf("signed out, led to %s", to)
	}
	stranger := r.client()
	stranger.Credential = must(r.svc.Computers.Ensure(t.Context(), "zoe@example.com", "zoe")).Credential
	var refusal *controlapi.Error
	if err := stranger.RevokeGrant(t.Context(), grant); !errors.As(err, &refusal) || refusal.Code != controlapi.CodeNotFound {
		t.Errorf("another computer: %v", err)
	}
	if list := must(stranger.Grants(t.Context())); len(list) != 0 {
		t.Errorf("another computer hears of %+v", list)
	}
	stranger.Credential = tokens.AccessToken
	if _, err := stranger.Grants(t.Context()); !errors.As(err, &refusal) || refusal.Code != controlapi.CodeUnauthorized {
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
	c.config.ClientSecret = must(r.svc.Clients.Rotate(t.Context(), c.client.ID))
	c.refresh(tokens.RefreshToken, "client_secret", old).refused(t, http.StatusBadRequest, "invalid_client")
	tokens = c.refresh(tokens.RefreshToken).want(t, http.StatusOK).tokens(t)
	programs.Must(t, r.svc.Clients.Remove(t.Context(), c.client.ID))
	c.refresh(tokens.RefreshToken).refused(t, http.StatusBadRequest, "invalid_client")
}

// claims of a token, unverified.
func claims(t testing.TB, token string) jwt.MapClaims {
	t.Helper()
	out := jwt.MapClaims{}
	_, _, err := jwt.NewParser().ParseUnverified(token, out)
	programs.Must(t, err)
	return out
}

func specAccessToken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.remote(0)
	_, tokens := c.granted()
	public := r.publicKey()
	key := must(jwt.ParseEdPublicKeyFromPEM([]byte(public)))
	token := programs.Got(jwt.Parse(tokens.AccessToken, func(*jwt.Token) (any, error) { return key, nil }, jwt.WithValidMethods([]string{"EdDSA"}),
		jwt.WithIssuer("service-control"), jwt.WithAudience("maya.localhost:8443"), jwt.WithExpirationRequired(), jwt.WithIssuedAt()))(t)
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
		programs.Must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
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
		if h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Access-Control-Allow-Headers") != "Authorization, Content-Type, *" || h.Get("Access-Control-Expose-Headers") != "*" ||
			!strings.Contains(h.Get("Access-Control-Allow-Methods"), method) || h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s %s: %v", a.Request.Method, a.Request.URL.Path, h)
		}
	}
	for path, method := range map[string]string{controlapi.PathToken: "POST", controlapi.PathRevoke: "POST", controlapi.PathPublicKey: "GET", controlapi.PathDiscovery: "GET"} {
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
	permissive(r.browser().get(controlapi.PathDiscovery).want(t, http.StatusOK), "GET")
	permissive(r.browser().get(controlapi.PathOpenID).want(t, http.StatusNotFound), "GET") // where clients look next
}

// A client that knows no more than the address finds the rest (RFC 8414).
func TestDiscovery(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.remote(0)
	var found struct {
		Issuer    string   `json:"issuer"`
		Authorize string   `json:"authorization_endpoint"`
		Token     string   `json:"token_endpoint"`
		Keys      string   `json:"jwks_uri"`
		Methods   []string `json:"code_challenge_methods_supported"`
		TokenAuth []string `json:"token_endpoint_auth_methods_supported"`
		Revoke    string   `json:"revocation_endpoint"`
		RevAuth   []string `json:"revocation_endpoint_auth_methods_supported"`
		Issuers   bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207
	}
	a := r.browser().get("/.well-known/oauth-authorization-server").want(t, http.StatusOK)
	programs.Must(t, json.Unmarshal([]byte(a.body), &found))
	if !found.Issuers || found.Issuer != r.svc.AuthURL() || found.Authorize != c.config.Endpoint.AuthURL || found.Token != c.config.Endpoint.TokenURL ||
		found.Keys != r.svc.AuthURL()+"/auth/jwks.json" ||
		found.Revoke != r.svc.AuthURL()+"/oauth/revoke" || !slices.Equal(found.RevAuth, found.TokenAuth) ||
		!slices.Equal(found.Methods, []string{"S256"}) || !slices.Equal(found.TokenAuth, []string{"client_secret_basic", "client_secret_post", "none", "private_key_jwt"}) {
		t.Errorf("%+v", found)
	}
}

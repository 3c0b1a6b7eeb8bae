//go:build clients

package clients

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"porchlight/test/programs"
)

// libraries are the ways to make a driver, by the name of the library.
var libraries = []struct {
	name  string
	start func(*house, testing.TB, registered) driver
	// detects is true for one that tries how a server wants clients to
	// authenticate.
	detects bool
}{
	{"golang.org/x/oauth2", (*house).goDriver, true},
	{"oauth4webapi", inProcess("node/oauth4webapi.mjs"), false},
	{"openid-client", inProcess("node/openid-client.mjs"), false},
	{"simple-oauth2", inProcess("node/simple-oauth2.mjs"), false},
	{"requests-oauthlib", inProcess("python/requests-oauthlib.py"), false},
	{"Authlib", inProcess("python/authlib-requests.py"), false},
}

func inProcess(path string) func(*house, testing.TB, registered) driver {
	return func(h *house, t testing.TB, client registered) driver { return h.start(t, path, client) }
}

// verifiers are libraries that verify access tokens with the key of /auth/pubkey, and
// with the one of /auth/jwks.json that the token names.
var verifiers = []struct{ name, path string }{
	{"jose", "node/jose.mjs"},
	{"PyJWT", "python/pyjwt.py"},
}

var steps = []string{"code", "app", "refresh", "replay", "secret", "claims", "revoked"}

// table is what came of it all: a row for each library and way to authenticate.
type table struct {
	mu    sync.Mutex
	cells map[string]map[string]string // row, step
	order []string
}

func (tb *table) row(name string) {
	tb.order = append(tb.order, name)
	tb.cells[name] = map[string]string{}
}

func (tb *table) set(row, step, what string) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.cells[row][step] = what
}

func (tb *table) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%-30s", "library")
	for _, step := range steps {
		fmt.Fprintf(&out, " %-8s", step)
	}
	for _, row := range tb.order {
		fmt.Fprintf(&out, "\n%-30s", row)
		for _, step := range steps {
			what := tb.cells[row][step]
			if what == "" {
				what = "-"
			}
			fmt.Fprintf(&out, " %-8s", what)
		}
	}
	return out.String()
}

// TestLibraries is the whole way of a remote client, by each library.
func TestLibraries(t *testing.T) {
	h := newHouse(t)
	h.signIn(t)
	var checks []*process
	for _, v := range verifiers {
		checks = append(checks, h.start(t, v.path, registered{AuthURL: h.account.AuthURL}))
	}
	var checking sync.Mutex // a process takes one order at a time
	results := &table{cells: map[string]map[string]string{}}
	t.Run("library", func(t *testing.T) {
		for _, library := range libraries {
			ways := []string{"basic", "form"}
			if library.detects {
				ways = append(ways, "detected")
			}
			for _, authentication := range ways {
				name := library.name + ", " + authentication
				results.row(name)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					client := h.issue(t, "Reader "+strings.ReplaceAll(name, "/", " "), h.back)
					client.Authentication = authentication
					s := story{house: h, t: t, client: client, library: library.start(h, t, client), step: func(step, what string) { results.set(name, step, what) }}
					wrong := client
					wrong.ClientSecret = "not" + client.ClientSecret[3:]
					s.impostor = library.start(h, t, wrong)
					s.verify = func(token string) []answer {
						checking.Lock()
						defer checking.Unlock()
						var out []answer
						for _, c := range checks {
							out = append(out, c.order(t, map[string]any{"do": "verify", "token": token, "audience": h.account.Host}))
						}
						return out
					}
					s.tell()
				})
			}
		}
	})
	t.Logf("\n%s", results)
	if path := os.Getenv("PORCHLIGHT_TABLE"); path != "" {
		if err := os.WriteFile(path, []byte(results.String()+"\n"), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// story is one library's way.
type story struct {
	house    *house
	t        testing.TB
	client   registered
	library  driver
	impostor driver // the same library with a wrong secret
	verify   func(token string) []answer
	step     func(step, what string)
}

func (s story) tell() {
	t, h := s.t, s.house
	began := time.Now()
	got, refused := s.library.finish(t, h.allow(t, s.library.begin(t), "Reader"))
	s.whole(got, refused)
	s.step("code", "ok")

	if status, body := s.library.call(t, h.app); status != http.StatusOK || body != h.answer() {
		t.Fatalf("the app answered %d, %q; want %q", status, body, h.answer())
	}
	if status, body := s.library.call(t, "https://nothing."+h.account.Host); status != http.StatusNotFound || !strings.Contains(body, "error") {
		t.Fatalf("where no app is, the answer is %d, %q", status, body)
	}
	s.step("app", "ok")

	next, refused := s.library.refresh(t, got.RefreshToken)
	s.whole(next, refused)
	if next.RefreshToken == got.RefreshToken || next.AccessToken == got.AccessToken {
		t.Fatal("refreshing handed out the same tokens")
	}
	if status, body := s.library.call(t, h.app); status != http.StatusOK || body != h.answer() {
		t.Fatalf("after the refresh the app answered %d, %q", status, body)
	}
	s.step("refresh", "ok")

	// A replay is refused and changes nothing; nor does a stranger who has the
	// refresh token and not the secret.
	s.want("replay", func() (tokens, *refusal) { return s.library.refresh(t, got.RefreshToken) }, "invalid_grant", http.StatusBadRequest)
	status := http.StatusBadRequest
	if s.client.Authentication == "basic" {
		status = http.StatusUnauthorized
	}
	s.want("secret", func() (tokens, *refusal) { return s.impostor.refresh(t, next.RefreshToken) }, "invalid_client", status)
	last, refused := s.library.refresh(t, next.RefreshToken)
	s.whole(last, refused)

	claims := s.claims(last)
	s.step("claims", "ok")

	revoke := h.revokeOnPage
	if s.client.Authentication == "form" {
		revoke = h.revokeHere
	}
	revoke(t, claims["grant"].(string))
	revoked := time.Now()
	s.want("revoked", func() (tokens, *refusal) { return s.library.refresh(t, last.RefreshToken) }, "access_denied", http.StatusBadRequest)
	s.shutOut()
	s.step("revoked", fmt.Sprintf("ok %.1fms", time.Since(revoked).Seconds()*1000))
	t.Logf("%v in all", time.Since(began).Round(time.Millisecond))
}

// whole checks a Token response.
func (s story) whole(got tokens, refused *refusal) {
	s.t.Helper()
	if refused != nil {
		s.t.Fatalf("refused: %+v", refused)
	}
	a := s.house.account
	if got.AccessToken == "" || got.RefreshToken == "" || !strings.EqualFold(got.TokenType, "Bearer") || got.ExpiresIn != 600 ||
		got.Scope != "connect" || got.Address != a.URL || got.Host != a.Host {
		s.t.Fatalf("token response %+v", got)
	}
}

func (s story) want(step string, ask func() (tokens, *refusal), code string, status int) {
	s.t.Helper()
	if _, refused := ask(); refused == nil || *refused != (refusal{code, status}) {
		s.t.Fatalf("%s: %+v, want %s with %d", step, refused, code, status)
	}
	s.step(step, "ok")
}

// claims has the verifying libraries read the access token, and checks all ten.
func (s story) claims(got tokens) map[string]any {
	t, a := s.t, s.house.account
	t.Helper()
	var claims map[string]any
	for i, read := range s.verify(got.AccessToken) {
		claims = read.Claims
		want := map[string]any{
			"iss": "service-control", "sub": a.AccountID, "email": a.Email, "aud": a.Host, "client_id": s.client.ClientID,
			"scope": "connect", "exp": number(claims, "iat") + 600,
		}
		for name, value := range want {
			if claims[name] != value {
				t.Errorf("%s: the claim %s is %v, want %v", verifiers[i].name, name, claims[name], value)
			}
		}
		for _, name := range []string{"grant", "jti"} {
			if value, ok := claims[name].(string); !ok || value == "" {
				t.Errorf("%s: the claim %s is %v", verifiers[i].name, name, claims[name])
			}
		}
		age := time.Since(time.Unix(int64(number(claims, "iat")), 0))
		if len(claims) != 10 || age < -time.Minute || age > 5*time.Minute || read.Header["alg"] != "EdDSA" || read.Header["typ"] != "JWT" {
			t.Errorf("%s: header %v, claims %v", verifiers[i].name, read.Header, claims)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return claims
}

func number(claims map[string]any, name string) float64 {
	n, _ := claims[name].(float64)
	return n
}

// shutOut waits until the access token of a revoked grant is refused, for longer than
// the one poll cycle of three seconds.
func (s story) shutOut() {
	s.t.Helper()
	programs.Eventually(s.t, "after the revocation the app refuses", func() bool {
		status, _ := s.library.call(s.t, s.house.app)
		return status == http.StatusUnauthorized
	})
}

package proxy_test

import (
	"bufio"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"porchlight/agent/access"
	"porchlight/agent/engine"
	"porchlight/agent/proxy"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// bearerRig is a rig that takes access tokens, with the control plane's key.
type bearerRig struct {
	*rig
	key ed25519.PrivateKey
}

func newBearerRig(t testing.TB, options ...func(*proxy.Config)) *bearerRig {
	t.Helper()
	r := &bearerRig{}
	r.rig = newRig(t, append(options, func(c *proxy.Config) {
		c.Bearer = access.NewBearer(c.Access)
		c.List = func() []engine.App {
			r.mu.Lock()
			defer r.mu.Unlock()
			return slices.Collect(maps.Values(r.apps))
		}
	})...)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	programs.Must(t, err)
	der := programs.Got(x509.MarshalPKIXPublicKey(public))(t)
	r.key, r.keys = private, []string{string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}
	r.sync()
	return r
}

// token is an access token of one person, of grant "g-" and their account.
func (r *bearerRig) token(accountID string, change ...func(*controlapi.AccessClaims)) string {
	r.t.Helper()
	now := r.now().Unix()
	claims := controlapi.AccessClaims{
		Issuer: "service-control", Subject: accountID, Email: accountID + "@example.com", Audience: rootHost, ClientID: "client",
		Grant: "g-" + accountID, Scope: "connect", IssuedAt: now, Expires: now + 600, ID: rand.Text(),
	}
	for _, c := range change {
		c(&claims)
	}
	token := programs.Got(jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims).SignedString(r.key))(r.t)
	return token
}

// revoke is the control plane telling of a revoked grant.
func (r *bearerRig) revoke(grant string) (closed int) {
	r.mu.Lock()
	r.revoked = append(r.revoked, controlapi.RevokedGrant{ID: grant, At: time.Now()})
	r.mu.Unlock()
	return r.sync()
}

func TestSpec(t *testing.T) {
	t.Parallel()
	t.Run("X6_tokens_taken_and_refused", specTokens)
	t.Run("X7_no_call_per_request", specNoCall)
	t.Run("V3_revoked_grant_closes", specRevokedGrantCloses)
}

func specTokens(t *testing.T) {
	t.Parallel()
	r := newBearerRig(t)
	r.app("notes", func(w http.ResponseWriter, q *http.Request) {
		fmt.Fprint(w, q.Header.Get("X-Service-User"), " ", q.Header.Get("X-Service-Email"), " ", q.Header.Get("X-Service-Name"), " ",
			q.Header.Get("X-Service-App"), " ", q.Header.Get("X-Service-Role"), " ", q.Header.Get("Authorization"))
	})
	r.app("photos", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "photos") })
	b := r.browser(true)
	notes, photos := origin+"/", "https://photos."+rootHost+"/"
	bearer := func(token string) []string { return []string{"Authorization", "Bearer " + token} }

	// The address is the snapshot's, which is newer than the token's.
	if res, body := b.fetch("GET", notes, bearer(r.token(bobID))...); res.StatusCode != 200 || body != bobID+" bob@example.com maya Notes member " {
		t.Errorf("%s %q", res.Status, body)
	}
	if res, body := b.fetch("POST", notes, bearer(r.token(ownerID))...); res.StatusCode != 200 || body != ownerID+" maya@example.com maya Notes owner " {
		t.Errorf("%s %q", res.Status, body)
	}
	// A token and no cookie: no page made the request, so its origin is its own.
	b.fetches(200, "with a foreign origin", "POST", notes, append(bearer(r.token(bobID)), "Origin", "https://pocketnotes.example")...)
	elsewhere := []string{"Origin", "https://pocketnotes.example", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"}
	b.fetches(200, "fetched by the page of another site", "GET", notes, append(bearer(r.token(bobID)), elsewhere...)...)
	// Not for them.
	for _, token := range []string{r.token(bobID), r.token("acc-stranger")} {
		if res, body := b.fetch("GET", photos, bearer(token)...); res.StatusCode != http.StatusForbidden || body == "photos" {
			t.Errorf("without the app: %s %q", res.Status, body)
		}
	}
	// The launcher and our own paths.
	if res, body := b.fetch("GET", origin+"/.porchlight/me", bearer(r.token(bobID))...); res.StatusCode != 200 || !strings.Contains(body, "bob@example.com") {
		t.Errorf("me: %s %q", res.Status, body)
	}

	refused := map[string]string{
		"expired":   r.token(bobID, func(c *controlapi.AccessClaims) { c.IssuedAt -= 700; c.Expires -= 700 }),
		"foreign":   r.token(bobID, func(c *controlapi.AccessClaims) { c.Audience = "zoe.porch.test" }),
		"tampered":  r.token(bobID)[:100] + r.token(ownerID)[100:],
		"unsigned":  r.token(bobID)[:strings.LastIndexByte(r.token(bobID), '.')+1],
		"revoked":   r.token(bobID, func(c *controlapi.AccessClaims) { c.Grant = "gone" }),
		"two of us": r.token(bobID) + "\x00" + r.token(ownerID),
	}
	r.revoke("gone")
	owner := r.signedIn("notes", ownerID, false) // a cookie does not make up for it
	for what, token := range refused {
		header := bearer(token)
		if first, second, two := strings.Cut(token, "\x00"); two {
			header = append(bearer(first), bearer(second)...)
		}
		for _, browser := range []*browser{b, owner} {
			res, body := browser.fetch("GET", notes, header...)
			if res.StatusCode != http.StatusUnauthorized || !strings.HasPrefix(res.Header.Get("WWW-Authenticate"), `Bearer error="invalid_token", resource_metadata="`) ||
				!strings.HasPrefix(body, `{"error":`) {
				t.Errorf("%s: %s %q %s", what, res.Status, res.Header.Get("WWW-Authenticate"), body)
			}
		}
	}

	// An app's own bearer token goes with the cookie, and ours beside it does not.
	if _, body := owner.fetch("GET", notes, bearer("the-apps.own.token")...); !strings.HasSuffix(body, " owner Bearer the-apps.own.token") {
		t.Errorf("an app's own token with a session: %q", body)
	}
	if _, body := b.fetch("GET", notes, append(bearer(r.token(bobID)), bearer("the-apps.own.token")...)...); !strings.HasSuffix(body, " member Bearer the-apps.own.token") {
		t.Errorf("both: %q", body)
	}
	for _, token := range []string{"the-apps.own.token", "opaque"} {
		res, _ := b.fetch("GET", notes, bearer(token)...)
		if got := res.Header.Get("WWW-Authenticate"); res.StatusCode != http.StatusUnauthorized || !strings.HasPrefix(got, `Bearer error="invalid_token", resource_metadata="`) {
			t.Errorf("%q alone: %s %s", token, res.Status, got)
		}
	}
	for _, other := range []string{"Basic bWF5YTp4", "Bearer", "Bearer "} {
		if res, _ := b.fetch("GET", notes, "Authorization", other); res.StatusCode != http.StatusUnauthorized || !strings.HasPrefix(res.Header.Get("WWW-Authenticate"), `Bearer resource_metadata="`) {
			t.Errorf("%q: %s %s", other, res.Status, res.Header.Get("WWW-Authenticate"))
		}
	}
}

// Every token is verified here: the control plane hears of none.
func specNoCall(t *testing.T) {
	t.Parallel()
	r := newBearerRig(t)
	r.app("notes", func(http.ResponseWriter, *http.Request) {})
	b := r.browser(true)
	for range 20 {
		if res, _ := b.fetch("GET", origin+"/", "Authorization", "Bearer "+r.token(bobID)); res.StatusCode != 200 {
			t.Fatal(res.Status)
		}
	}
	if n := r.redeems.Load(); n != 0 {
		t.Errorf("%d calls", n)
	}
}

// lasting is an app whose streams and WebSockets do not end by themselves.
func lasting(w http.ResponseWriter, q *http.Request) {
	switch q.URL.Path {
	case "/ws":
		echo(w, q)
	case "/stream":
		fmt.Fprintln(w, "begun")
		http.NewResponseController(w).Flush()
		<-q.Context().Done()
	}
}

// stream opens a stream of the app that is lasting.
func (b *browser) stream(header ...string) *bufio.Reader {
	b.r.t.Helper()
	res := b.do(b.request("GET", origin+"/stream", nil, header...))
	b.r.t.Cleanup(func() { res.Body.Close() })
	body := bufio.NewReader(res.Body)
	if line, err := body.ReadString('\n'); line != "begun\n" {
		b.r.t.Fatalf("%s %q %v", res.Status, line, err)
	}
	return body
}

// openThree opens a stream over either version of HTTP, and a WebSocket. wantCut fails
// unless all of them were cut off.
func (r *rig) openThree(header ...string) (wantCut func()) {
	r.t.Helper()
	return r.openThreeBy(r.browser, header...)
}

func (r *rig) openThreeBy(by func(http2 bool) *browser, header ...string) (wantCut func()) {
	r.t.Helper()
	streams := map[string]*bufio.Reader{"HTTP/1.1": by(false).stream(header...), "HTTP/2": by(true).stream(header...)}
	ws, _, err := by(false).dial("wss://"+sni+"/ws", header...)
	programs.Must(r.t, err)
	r.t.Cleanup(func() { ws.CloseNow() })
	_, _, err = ws.Read(r.t.Context())
	programs.Must(r.t, err)
	return func() {
		r.t.Helper()
		for what, body := range streams {
			if _, err := body.ReadByte(); err == nil || errors.Is(err, io.EOF) {
				r.t.Errorf("%s ended with %v, as if it were whole", what, err)
			}
		}
		if _, _, err := ws.Read(r.t.Context()); err == nil {
			r.t.Error("the WebSocket is open")
		}
	}
}

// A streaming answer and a WebSocket that a token opened end with its grant;
// those of the same person's session go on.
func specRevokedGrantCloses(t *testing.T) {
	t.Parallel()
	r := newBearerRig(t)
	r.app("notes", lasting)
	wantCut := r.openThree("Authorization", "Bearer "+r.token(bobID))
	r.signedIn("notes", bobID, false).stream()

	if closed := r.revoke("g-" + bobID); closed != 3 {
		t.Errorf("%d connections closed", closed)
	}
	wantCut()
	within(t, "only the session's is left", func() bool { return r.access.Connections()["id-notes"] == 1 })
}

package access_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"porchlight/agent/access"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

const root = "maya.porch.test"

// signer is a control plane's key.
type signer struct {
	key ed25519.PrivateKey
	pem string
}

func newSigner(t testing.TB) signer {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	programs.Must(t, err)
	der := programs.Got(x509.MarshalPKIXPublicKey(public))(t)
	return signer{private, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}
}

func (s signer) sign(t testing.TB, claims jwt.Claims) string {
	t.Helper()
	return programs.Got(jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims).SignedString(s.key))(t)
}

// bobs are the claims of a token of bob's, issued now.
func bobs(now time.Time) controlapi.AccessClaims {
	return controlapi.AccessClaims{
		Issuer: "service-control", Subject: bob, Email: "bob@example.com", Audience: root, ClientID: "c1", Grant: "g1",
		Scope: "connect", IssuedAt: now.Unix(), Expires: now.Unix() + 600, ID: rand.Text(),
	}
}

// keyed is a snapshot that trusts signers.
func keyed(signers ...signer) controlapi.Snapshot {
	s := snapshot(nil)
	s.Computer.Host = root
	for _, k := range signers {
		s.PublicKeys = append(s.PublicKeys, k.pem)
	}
	return s
}

// trusting is who may come in with tokens of these signers.
func trusting(t testing.TB, c *clock, signers ...signer) (*access.Access, *access.Bearer) {
	t.Helper()
	a, _ := open(t, t.TempDir(), c)
	a.SetSnapshot(keyed(signers...))
	return a, access.NewBearer(a)
}

func authorized(values ...string) *http.Request {
	return &http.Request{Header: http.Header{"Authorization": values}}
}

func TestBearer(t *testing.T) {
	t.Parallel()
	c, s, stranger := newClock(), newSigner(t), newSigner(t)
	a, _ := open(t, t.TempDir(), c)
	b := access.NewBearer(a)
	good := s.sign(t, bobs(c.now()))
	if _, present, err := b.Authenticate(authorized("Bearer " + good)); !present || err == nil {
		t.Errorf("without a snapshot: %v, %v", present, err)
	}
	a.SetSnapshot(keyed(s))
	for range 2 { // verified, and remembered
		id, present, err := b.Authenticate(authorized("Bearer " + good))
		if err != nil || !present || id != (access.Identity{AccountID: bob, Email: "bob@example.com", GrantID: "g1", ClientID: "c1"}) {
			t.Fatalf("%+v, %v, %v", id, present, err)
		}
		if d := a.Decide(id, notes); !d.Allowed || d.Role != controlapi.RoleMember {
			t.Errorf("%+v", d)
		}
	}

	with := func(change func(*controlapi.AccessClaims)) string {
		claims := bobs(c.now())
		change(&claims)
		return s.sign(t, claims)
	}
	head, rest, _ := strings.Cut(good, ".")
	body, signature, _ := strings.Cut(rest, ".")
	segment := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	keyedHash := func(key string) string {
		m := hmac.New(sha256.New, []byte(key))
		m.Write([]byte(segment(`{"alg":"HS256","typ":"JWT"}`) + "." + body))
		return segment(`{"alg":"HS256","typ":"JWT"}`) + "." + body + "." + base64.RawURLEncoding.EncodeToString(m.Sum(nil))
	}
	type claims = controlapi.AccessClaims
	for what, token := range map[string]string{
		"another key":                 stranger.sign(t, bobs(c.now())),
		"a foreign audience":          with(func(c *claims) { c.Audience = "zoe.porch.test" }),
		"an app's host as audience":   with(func(c *claims) { c.Audience = "notes." + root }),
		"no audience":                 with(func(c *claims) { c.Audience = "" }),
		"another scope":               with(func(c *claims) { c.Scope = "openid" }),
		"no subject":                  with(func(c *claims) { c.Subject = "" }),
		"no email":                    with(func(c *claims) { c.Email = "" }),
		"no client":                   with(func(c *claims) { c.ClientID = "" }),
		"no grant":                    with(func(c *claims) { c.Grant = "" }),
		"no id":                       with(func(c *claims) { c.ID = "" }),
		"no expiry":                   with(func(c *claims) { c.Expires = 0 }),
		"no issue":                    with(func(c *claims) { c.IssuedAt = 0 }),
		"a long life":                 with(func(c *claims) { c.Expires++ }),
		"expired before it was made":  with(func(c *claims) { c.Expires = c.IssuedAt - 1 }),
		"expired":                     with(func(c *claims) { c.IssuedAt -= 600; c.Expires -= 600 }),
		"from the future":             with(func(c *claims) { c.IssuedAt += 3; c.Expires += 3 }),
		"far beyond any calendar":     with(func(c *claims) { c.IssuedAt, c.Expires = 1<<62, 1<<62+600 }),
		"a list as audience":          s.sign(t, jwt.MapClaims{"iss": "service-control", "aud": []string{root}}),
		"no algorithm":                segment(`{"alg":"none"}`) + "." + body + ".",
		"no algorithm, signed":        segment(`{"alg":"none"}`) + "." + body + "." + signature,
		"the key as HMAC secret":      keyedHash(s.pem),
		"a cut signature":             good[:len(good)-1],
		"no signature":                head + "." + body + ".",
		"other claims":                head + "." + segment(`{"iss":"service-control","sub":"acc-owner"}`) + "." + signature,
		"too long":                    with(func(c *claims) { c.Email = strings.Repeat("e", 5000) }),
		"loose bits in the signature": loose(good),
	} {
		if id, present, err := b.Authenticate(authorized("Bearer " + token)); !present || err == nil || id != (access.Identity{}) {
			t.Errorf("%s: %+v, %v, %v", what, id, present, err)
		}
	}
	if _, present, err := b.Authenticate(authorized("Bearer "+good, "bearer "+good)); !present || err == nil {
		t.Errorf("two of ours: %v, %v", present, err)
	}
	if _, _, err := b.Authenticate(authorized("Bearer " + good)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// loose changes bits of the last character that carry nothing.
func loose(token string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := len(token) - 1
	return token[:last] + string(alphabet[strings.IndexByte(alphabet, token[last])|1])
}

// What is no token of the control plane is the app's business, by whatever
// scheme, and leaves a cookie session alone.
func TestOtherCredentialsAreNotOurs(t *testing.T) {
	t.Parallel()
	c, s := newClock(), newSigner(t)
	_, b := trusting(t, c, s)
	foreign := bobs(c.now())
	foreign.Issuer = "https://login.example"
	good := s.sign(t, bobs(c.now()))
	for _, value := range []string{
		"", "Bearer", "Bearer ", "Bearer x", "Bearer x.y", "Bearer x.y.z", "Bearer " + s.sign(t, foreign), "Basic dTpw",
		"Token " + good, good, "Bearer " + good + " " + good, "Bearer " + good + ".x", "Bearer ..", "Bearer .e30.",
	} {
		if id, present, err := b.Authenticate(authorized(value)); present || err != nil || id != (access.Identity{}) {
			t.Errorf("%q: %+v, %v, %v", value, id, present, err)
		}
	}
	if _, present, err := b.Authenticate(authorized("Basic dTpw", "BEARER   "+good)); !present || err != nil {
		t.Errorf("beside an app's own: %v, %v", present, err)
	}
}

// A remembered token is held to what has changed since.
func TestRememberedTokens(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(c *clock, a *access.Access, s, other signer){
		"time":     func(c *clock, _ *access.Access, _, _ signer) { c.advance(600 * time.Second) },
		"the past": func(c *clock, _ *access.Access, _, _ signer) { c.advance(-4 * time.Second) },
		"the keys": func(_ *clock, a *access.Access, _, other signer) { a.SetSnapshot(keyed(other)) },
		"no keys":  func(_ *clock, a *access.Access, _, _ signer) { a.SetSnapshot(keyed()) },
		"another host": func(_ *clock, a *access.Access, s, _ signer) {
			n := keyed(s)
			n.Computer.Host = "bob.porch.test"
			a.SetSnapshot(n)
		},
		"the grant": func(_ *clock, a *access.Access, s, _ signer) {
			n := keyed(s)
			n.RevokedGrants = []controlapi.RevokedGrant{{ID: "g1"}}
			a.SetSnapshot(n)
		},
		"the owner": func(_ *clock, a *access.Access, _, _ signer) { a.Deny(store.DenyRecord{GrantID: "g1"}) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c, s, other := newClock(), newSigner(t), newSigner(t)
			a, b := trusting(t, c, s)
			request := authorized("Bearer " + s.sign(t, bobs(c.now())))
			_, _, err := b.Authenticate(request)
			programs.Must(t, err)
			change(c, a, s, other)
			if _, present, err := b.Authenticate(request); !present || err == nil {
				t.Errorf("still accepted: %v, %v", present, err)
			}
		})
	}
}

// While the control plane changes its key, both verify, and what is no key does
// no harm.
func TestTwoKeys(t *testing.T) {
	t.Parallel()
	c, old, fresh := newClock(), newSigner(t), newSigner(t)
	a, _ := open(t, t.TempDir(), c)
	n := keyed(fresh, old)
	n.PublicKeys = append([]string{"no key", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"}, n.PublicKeys...)
	a.SetSnapshot(n)
	b := access.NewBearer(a)
	for _, s := range []signer{old, fresh} {
		if _, _, err := b.Authenticate(authorized("Bearer " + s.sign(t, bobs(c.now())))); err != nil {
			t.Error(err)
		}
	}
}

// A token is good for its 600 seconds by the control plane's clock, as far as that
// was seen to differ from this computer's and not by more than a minute.
func TestSkew(t *testing.T) {
	t.Parallel()
	c, s := newClock(), newSigner(t)
	var log bytes.Buffer
	a := newAccess(t, access.Config{Store: openStore(t, t.TempDir()), Now: c.now, Log: slog.New(slog.NewTextHandler(&log, nil))})
	a.SetSnapshot(keyed(s))
	b := access.NewBearer(a)
	for _, tt := range []struct {
		ahead time.Duration // the control plane's clock
		shift int64         // seconds that the token was issued after now by this computer's
		fine  bool
	}{
		{0, 0, true}, {0, -599, true}, {0, -600, false}, {0, 2, true}, {0, 3, false},
		{30 * time.Second, 30, true}, {30 * time.Second, 33, false}, {30 * time.Second, -569, true}, {30 * time.Second, -570, false},
		{-30 * time.Second, -629, true}, {-30 * time.Second, -630, false},
		{time.Hour, 62, true}, {time.Hour, 63, false}, {-time.Hour, -659, true}, {-time.Hour, -660, false},
	} {
		a.SetClockAhead(tt.ahead)
		claims := bobs(c.now())
		claims.IssuedAt += tt.shift
		claims.Expires += tt.shift
		if _, _, err := b.Authenticate(authorized("Bearer " + s.sign(t, claims))); (err == nil) != tt.fine {
			t.Errorf("the other clock %v ahead, issued at %d s: %v", tt.ahead, tt.shift, err)
		}
		if tt.ahead == 0 && log.Len() > 0 {
			t.Errorf("said of equal clocks: %s", log.String())
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("said %d times: %s", n, log.String())
	}
}

// What was opened by a token is closed by a revoked grant at once, and after a
// silence in which a revocation may have come and gone. A session's stays open.
func TestGrantsCloseConnections(t *testing.T) {
	t.Parallel()
	c, s := newClock(), newSigner(t)
	a, _ := trusting(t, c, s)
	enter := func(id access.Identity) *bool {
		closed := new(bool)
		if d, leave := a.Enter(id, notes, func() { *closed = true }); !d.Allowed {
			t.Fatalf("%+v: %+v", id, d)
		} else {
			t.Cleanup(leave)
		}
		return closed
	}
	session := enter(access.Identity{AccountID: bob, Epoch: 1})
	first, second := enter(access.Identity{AccountID: bob, GrantID: "g1"}), enter(access.Identity{AccountID: bob, GrantID: "g2"})
	n := keyed(s)
	n.RevokedGrants = []controlapi.RevokedGrant{{ID: "g1"}}
	if closed := a.SetSnapshot(n); closed != 1 || !*first || *second || *session {
		t.Errorf("closed %d: g1 %v, g2 %v, session %v", closed, *first, *second, *session)
	}
	c.advance(controlapi.GrantMemory - time.Second)
	if a.Touch(); *second {
		t.Error("a short silence closed g2")
	}
	c.advance(controlapi.GrantMemory)
	if a.Touch(); !*second || *session {
		t.Errorf("after a long silence: g2 closed %v, session closed %v", *second, *session)
	}
}

// The memory of tokens has a bound, and who fills it keeps nobody out.
func TestManyTokens(t *testing.T) {
	t.Parallel()
	c, s := newClock(), newSigner(t)
	_, b := trusting(t, c, s)
	request := authorized("Bearer " + s.sign(t, bobs(c.now())))
	for range 9000 {
		_, _, err := b.Authenticate(authorized("Bearer " + s.sign(t, bobs(c.now()))))
		programs.Must(t, err)
	}
	if n := access.Remembered(b); n > 8192 || n < 4096 {
		t.Errorf("%d tokens are remembered", n)
	}
	if _, _, err := b.Authenticate(request); err != nil {
		t.Error(err)
	}
}

// Whatever comes in, a token that is taken is one of ours, so that it is taken
// out of the app's request as well.
func FuzzBearer(f *testing.F) {
	c, s := newClock(), newSigner(f)
	_, b := trusting(f, c, s)
	good := s.sign(f, bobs(c.now()))
	for _, seed := range []string{"Bearer " + good, "bearer\t" + good, "Bearer x.y.z", "Basic dTpw", "", "Bearer " + good[:len(good)-2]} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		id, present, err := b.Authenticate(authorized(value))
		token, ours := access.OwnToken(value)
		if present != ours {
			t.Errorf("%q: present %v, ours %v", value, present, ours)
		}
		if present && err == nil && (token != good || id.AccountID != bob) {
			t.Errorf("%q passes as %+v", value, id)
		}
		if err != nil && id != (access.Identity{}) {
			t.Errorf("%q: %+v with %v", value, id, err)
		}
	})
}

// BenchmarkBearer is a request's check of a token seen before, and of a new one.
func BenchmarkBearer(b *testing.B) {
	c, s := newClock(), newSigner(b)
	a, _ := trusting(b, c, s)
	request := authorized("Bearer " + s.sign(b, bobs(c.now())))
	for what, fresh := range map[string]bool{"remembered": false, "new": true} {
		b.Run(what, func(b *testing.B) {
			bearer := access.NewBearer(a)
			b.ReportAllocs()
			for b.Loop() {
				if fresh {
					bearer = access.NewBearer(a)
				}
				_, _, err := bearer.Authenticate(request)
				programs.Must(b, err)
			}
		})
	}
}

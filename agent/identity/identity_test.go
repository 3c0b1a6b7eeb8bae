package identity

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

var bob = Claims{Issuer: "https://maya.example", Audience: "https://notes.maya.example", Subject: "acc-bob", Email: "bob@example.com", Role: "member", Name: "maya"}

// bench is a signer on a real store, by a clock that the test moves.
type bench struct {
	*Signer
	t     *testing.T
	dir   string
	store *store.Store
	at    time.Time
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, dir: t.TempDir(), at: time.Date(2026, 11, 28, 5, 0, 0, 0, time.UTC)}
	b.open()
	t.Cleanup(func() { b.store.Close() })
	return b
}

func (b *bench) open() {
	b.store = programs.Got(store.Open(b.dir))(b.t)
	b.Signer = New(b.store, func() time.Time { return b.at })
}

func (b *bench) token(c Claims) string { b.t.Helper(); return programs.Got(b.Token(c))(b.t) }

func (b *bench) set() controlapi.KeySet { b.t.Helper(); return programs.Got(b.KeySet())(b.t) }

// verify is what an app does that has nothing but a key set.
func verify(text string, set controlapi.KeySet, at time.Time) (*jwt.Token, error) {
	return jwt.Parse(text, func(t *jwt.Token) (any, error) {
		for _, k := range set.Keys {
			if k.ID == t.Header["kid"] {
				raw, err := base64.RawURLEncoding.DecodeString(k.X)
				return ed25519.PublicKey(raw), err
			}
		}
		return nil, errors.New("no such key")
	}, jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithTimeFunc(func() time.Time { return at }), jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(), jwt.WithAudience(bob.Audience), jwt.WithIssuer(bob.Issuer))
}

// A token says what the headers say, for a minute, and is made again when half of that is
// over, when the clock was set back, and for whatever else it has to say.
func TestToken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.token(bob)
	got, err := verify(first, b.set(), b.at)
	programs.Must(t, err)
	want := map[string]any{
		"iss": bob.Issuer, "aud": bob.Audience, "sub": "acc-bob", "email": "bob@example.com", "role": "member", "name": "maya",
		"iat": float64(b.at.Unix()), "exp": float64(b.at.Unix() + 60),
	}
	if said := fmt.Sprint(got.Claims); said != fmt.Sprint(jwt.MapClaims(want)) || got.Header["typ"] != Type || got.Header["alg"] != "EdDSA" {
		t.Errorf("%v, %v", got.Header, said)
	}
	begin := b.at
	for _, c := range []struct {
		after time.Duration
		same  bool
	}{{0, true}, {29 * time.Second, true}, {30 * time.Second, false}, {time.Hour, false}, {-time.Minute, false}} {
		b.at = begin
		again := b.token(bob) // afresh, where the clock had gone on
		b.at = begin.Add(c.after)
		now := b.token(bob)
		if (now == again) != c.same {
			t.Errorf("after %v the token is the same: %t", c.after, now == again)
		}
		if _, err := verify(now, b.set(), b.at); err != nil {
			t.Errorf("after %v: %v", c.after, err)
		}
	}
	b.at = begin
	owner := bob
	owner.Role = "owner"
	if b.token(owner) == b.token(bob) {
		t.Error("another role has the same token")
	}
	if _, err := verify(first, b.set(), begin.Add(Life)); !errors.Is(err, jwt.ErrTokenExpired) {
		t.Errorf("after a minute: %v", err)
	}
}

// The key is made when it is first needed, is kept where nobody else reads, and is the same
// after a restart; another computer in its place has another.
func TestKeyIsKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if kept := programs.Got(b.store.IdentityKeys())(t); kept != nil {
		t.Errorf("a key before it is needed: %v", kept)
	}
	programs.Must(t, b.store.SaveSnapshot(controlapi.Snapshot{Computer: controlapi.Computer{ID: "one"}}, b.at))
	before := b.set()
	if len(before.Keys) != 1 || before.Keys[0].Use != "sig" || before.Keys[0].Algorithm != "EdDSA" {
		t.Errorf("%+v", before)
	}
	if mode := programs.Got(os.Stat(filepath.Join(b.dir, store.FileName)))(t).Mode().Perm(); mode != 0o600 {
		t.Errorf("it is kept with %v", mode)
	}
	for _, c := range []struct {
		computer string
		same     bool
	}{{"one", true}, {"two", false}} {
		programs.Must(t, b.store.Close())
		b.open()
		programs.Must(t, b.store.BecomeComputer(c.computer))
		if after := b.set(); (after.Keys[0] == before.Keys[0]) != c.same {
			t.Errorf("computer %s: %v, before %v", c.computer, after, before)
		}
	}
}

// Whatever was signed can be checked for as long as it lives, across a rotation and a
// restart in it, also by who keeps the key set for minutes. After a leak nothing is left.
func TestRotation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	type signed struct {
		text string
		at   time.Time
	}
	var kept controlapi.KeySet
	var all []signed
	kids := map[any]bool{}
	step := func(d time.Duration) {
		b.at = b.at.Add(d)
		all = append(all, signed{b.token(bob), b.at})
		for _, s := range all[max(0, len(all)-3):] {
			if b.at.Sub(s.at) > Life/2 {
				continue
			}
			for what, set := range map[string]controlapi.KeySet{"now": b.set(), "nine minutes ago": kept} {
				got, err := verify(s.text, set, b.at)
				if err != nil {
					t.Fatalf("%v later, with the keys of %s: %v", b.at.Sub(s.at), what, err)
				}
				kids[got.Header["kid"]] = true
			}
		}
	}
	kept = b.set()
	first := b.token(bob)
	step(0)
	programs.Got(b.Rotate(false))(t)
	if again := programs.Got(b.Rotate(false))(t); len(again.Keys) != 2 {
		t.Errorf("a key that is on its way is replaced: %v", again)
	}
	programs.Must(t, b.store.Close())
	b.open()
	var sets []controlapi.KeySet
	for i := range 66 { // 22 minutes
		sets = append(sets, b.set())
		kept = sets[max(0, i-27)]
		step(20 * time.Second)
	}
	if len(kids) != 2 || len(b.set().Keys) != 1 {
		t.Errorf("%d keys have signed, and there are %v", len(kids), b.set())
	}
	if _, err := verify(first, b.set(), b.at); err == nil || errors.Is(err, jwt.ErrTokenExpired) {
		t.Errorf("the first key is still there: %v", err)
	}
	before := b.token(bob)
	after := programs.Got(b.Rotate(true))(t)
	if _, err := verify(before, after, b.at); err == nil || len(after.Keys) != 1 {
		t.Errorf("after a leak the key before is still good: %v", after)
	}
	if _, err := verify(b.token(bob), after, b.at); err != nil {
		t.Errorf("the new key does not sign at once: %v", err)
	}
}

// Many visitors do not make it remember without a bound.
func TestTokensAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range maxTokens + 10 {
		c := bob
		c.Subject = strconv.Itoa(i)
		b.token(c)
	}
	if len(b.tokens) > maxTokens {
		t.Errorf("%d tokens are remembered", len(b.tokens))
	}
}

// A store that cannot be written gives no token rather than one that nobody can check
// after a restart.
func TestNoKeyNoToken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	programs.Must(t, b.store.Close())
	if text, err := b.Token(bob); err == nil || text != "" {
		t.Errorf("%q, %v", text, err)
	}
	if set, err := b.KeySet(); err == nil {
		t.Errorf("%v", set)
	}
}

// BenchmarkToken: of a busy page, one request in a half minute signs.
func BenchmarkToken(b *testing.B) {
	db := programs.Got(store.Open(b.TempDir()))(b)
	defer db.Close()
	s := New(db, time.Now)
	for _, every := range []bool{false, true} {
		b.Run(fmt.Sprintf("signing=%t", every), func(b *testing.B) {
			b.ReportAllocs()
			c := bob
			for b.Loop() {
				if every {
					clear(s.tokens)
				}
				if _, err := s.Token(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

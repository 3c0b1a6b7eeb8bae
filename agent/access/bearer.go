package access

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/internal/bounds"
)

// Bearer finds out who a request comes from by its access token
// (docs/interface.md, Access token). Whether that person may open the app is
// decided afterwards, as for everybody else; a grant that was revoked, or denied
// on this computer, is refused here already, because then it is the token that is
// worth nothing.
//
// Verifying takes a signature check; tokens that passed are remembered by their
// digest until they expire. What can change meanwhile is looked at every time:
// the time, the keys, the root host and the grants.
//
// It is safe for concurrent use.
type Bearer struct {
	access *Access
	behind sync.Once // tells once that the clocks differ

	mu    sync.RWMutex
	cache map[[sha256.Size]byte]*verified // guarded by mu
}

// verified is a token that passed.
type verified struct {
	id       Identity
	keys     *keySet // that it was verified with
	audience string
	issued   time.Time
	expires  time.Time
}

// keySet is the verifying keys of a snapshot. Snapshots with the same keys share
// one, so that a pointer says whether they have changed.
type keySet struct {
	pems []string
	keys []ed25519.PublicKey // those of pems that are keys
}

const (
	maxToken    = 4 << 10 // bytes
	usualToken  = 1 << 10 // bytes, of which the control plane's have about half
	maxVerified = 8192    // tokens remembered
)

// NewBearer makes one that verifies with the keys of a's snapshot.
func NewBearer(a *Access) *Bearer {
	return &Bearer{access: a, cache: map[[sha256.Size]byte]*verified{}}
}

var (
	errTwoTokens    = errors.New("more than one access token")
	errTokenLong    = errors.New("the access token is too long")
	errNoKeys       = errors.New("no key to verify access tokens with is known yet")
	errClaims       = errors.New("a claim is missing or not what it must be")
	errExpired      = errors.New("the access token has expired")
	errEarly        = errors.New("the access token is from the future")
	errGrantRevoked = errors.New("the grant was revoked")
)

// Authenticate returns whom the request's access token names. present is false
// when it carries none of ours: an app's own bearer token is the app's business.
// With an error the token is of ours and worth nothing here.
func (b *Bearer) Authenticate(r *http.Request) (id Identity, present bool, err error) {
	var token string
	var passed *verified
	for _, value := range r.Header["Authorization"] {
		t, v := b.passedBefore(value)
		ours := v != nil
		if !ours {
			t, ours = OwnToken(value)
		}
		if ours {
			if present {
				return Identity{}, true, errTwoTokens
			}
			token, passed, present = t, v, true
		}
	}
	if !present {
		return Identity{}, false, nil
	}
	id, err = b.verify(token, passed)
	return id, true, err
}

// passedBefore returns the token in an Authorization value that passed before, and
// what it said, without reading it: taking a token apart costs more than all else
// about it. For any other value it returns nil.
func (b *Bearer) passedBefore(authorization string) (token string, passed *verified) {
	scheme, token, ok := strings.Cut(authorization, " ")
	if !ok || len(token) > maxToken || !strings.EqualFold(scheme, "bearer") {
		return "", nil
	}
	var room [usualToken]byte // of most tokens, so that they are not copied to the heap
	digest := sha256.Sum256(append(room[:0], token...))
	b.mu.RLock()
	defer b.mu.RUnlock()
	return token, b.cache[digest]
}

// OwnToken returns the access token in an Authorization value when it is one of
// the control plane's, by its issuer and without verifying it: such a token is a
// secret between visitor and agent even when it is worth nothing any more.
func OwnToken(authorization string) (token string, ours bool) {
	fields := strings.Fields(authorization)
	if len(fields) != 2 || !strings.EqualFold(fields[0], "bearer") || !ownToken(fields[1]) {
		return "", false
	}
	return fields[1], true
}

// HoldsToken says whether such a token stands anywhere in an Authorization value: after
// another scheme, in place of one, or as user or password of Basic, in base64.
func HoldsToken(authorization string) bool {
	for word := range tokenWords(authorization) {
		if ownToken(word) {
			return true
		}
		for inner := range tokenWords(string(decodeLoosely([]byte(word)))) {
			if ownToken(inner) {
				return true
			}
		}
	}
	return false
}

func tokenWords(value string) iter.Seq[string] {
	return strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune(" \t,;:=\"'<>", r) })
}

func ownToken(token string) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return false
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	return json.Unmarshal(payload, &claims) == nil && claims.Issuer == controlapi.TokenIssuer
}

// verify judges a token, and what it said when it passed before, or nil.
func (b *Bearer) verify(token string, v *verified) (Identity, error) {
	if len(token) > maxToken {
		return Identity{}, errTokenLong
	}
	st, now := b.access.state.Load(), b.access.now().Add(time.Duration(b.access.clockAhead.Load()))
	if st.keys == nil || len(st.keys.keys) == 0 {
		return Identity{}, errNoKeys
	}
	if v == nil || v.keys != st.keys || v.audience != st.snapshot.Computer.Host {
		var err error
		if v, err = check(token, st.keys, st.snapshot.Computer.Host); err != nil {
			return Identity{}, err
		}
		if err := b.inTime(v, now); err != nil {
			return Identity{}, err
		}
		b.remember(sha256.Sum256([]byte(token)), v, now)
	} else if err := b.inTime(v, now); err != nil {
		return Identity{}, err
	}
	if st.grants[v.id.GrantID] || st.denied[store.DenyRecord{GrantID: v.id.GrantID}] {
		return Identity{}, errGrantRevoked
	}
	return v.id, nil
}

// awaitGrant is how long a token of a grant for some apps waits for the snapshot that says
// for which: who was just given it is here a little sooner.
const awaitGrant = 5 * time.Second

// GrantOpens says whether a grant is good for an app, or for the launcher (the empty
// appID), whatever its person may open. It may wait for a moment, see awaitGrant.
func (a *Access) GrantOpens(ctx context.Context, grantID, appID string) bool {
	st := a.state.Load()
	if controlapi.IsLimitedGrant(grantID) && !st.knowsGrant(grantID) {
		ctx, cancel := context.WithTimeout(ctx, awaitGrant)
		defer cancel()
		a.await(ctx, func(next *state) bool {
			st = next
			return st.knowsGrant(grantID)
		})
	}
	return st.grantOpens(grantID, appID)
}

func (st *state) knowsGrant(id string) bool {
	_, limited := st.snapshot.GrantApps[id]
	return limited || st.grants[id]
}

func (st *state) grantOpens(id, appID string) bool {
	apps, limited := st.snapshot.GrantApps[id]
	if !limited {
		return !controlapi.IsLimitedGrant(id)
	}
	return appID != "" && slices.Contains(apps, appID)
}

// dateStep is how far a token may seem to come from the future. The clocks are
// compared by the Date of an answer, which has whole seconds and takes a moment to
// arrive.
const dateStep = 2 * time.Second

// inTime holds a token to its times by the control plane's clock.
func (b *Bearer) inTime(v *verified, now time.Time) error {
	if ahead := time.Duration(b.access.clockAhead.Load()); ahead.Abs() > dateStep {
		b.behind.Do(func() {
			b.access.log.Warn("this computer's clock and the control plane's differ; access tokens are held to the control plane's, up to a minute off", "ahead", ahead)
		})
	}
	switch {
	case !now.Before(v.expires):
		return errExpired
	case now.Before(v.issued.Add(-dateStep)):
		return errEarly
	}
	return nil
}

// check verifies a token but for its times: who signed it, for which computer,
// and that it has every claim. A token that lived longer than a revoked grant is
// remembered would outlive its revocation.
func check(token string, keys *keySet, audience string) (*verified, error) {
	parser := jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}),
		jwt.WithStrictDecoding(),
		jwt.WithoutClaimsValidation(), // the claims are looked at below
	)
	var claims controlapi.AccessClaims
	var err error
	for _, key := range keys.keys {
		claims = controlapi.AccessClaims{}
		if _, err = parser.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return key, nil }); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the access token does not verify: %w", err)
	}
	life := time.Duration(claims.Expires-claims.IssuedAt) * time.Second
	switch {
	case claims.Issuer != controlapi.TokenIssuer, claims.Audience != audience, audience == "",
		claims.Scope != controlapi.TokenScope,
		claims.Subject == "", claims.Email == "", claims.ClientID == "", claims.Grant == "", claims.ID == "",
		claims.IssuedAt <= 0, life <= 0, life > controlapi.TokenLife:
		return nil, errClaims
	}
	return &verified{
		id:       Identity{AccountID: claims.Subject, Email: claims.Email, GrantID: claims.Grant, ClientID: claims.ClientID},
		keys:     keys,
		audience: audience,
		issued:   time.Unix(claims.IssuedAt, 0),
		expires:  time.Unix(claims.Expires, 0),
	}, nil
}

// remember caches a token that passed. When there is no room, the expired go,
// and then any.
func (b *Bearer) remember(digest [sha256.Size]byte, v *verified, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bounds.MakeRoom(b.cache, maxVerified, func(old *verified) bool { return now.After(old.expires) || old.keys != v.keys })
	b.cache[digest] = v
}

// keysOf are the verifying keys of a snapshot; before are those of the last one.
// Keys of another kind than Ed25519 are left out and not refused: a later control
// plane may sign with them too, and what the others verify is still good.
func keysOf(pems []string, before *keySet) *keySet {
	if before != nil && slices.Equal(before.pems, pems) {
		return before
	}
	set := &keySet{pems: pems}
	for _, p := range pems {
		key, err := jwt.ParseEdPublicKeyFromPEM([]byte(p))
		if ed, ok := key.(ed25519.PublicKey); err == nil && ok {
			set.keys = append(set.keys, ed)
		}
	}
	return set
}

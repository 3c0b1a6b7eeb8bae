// Package identity signs who a visitor is, for apps that check it (docs/interface.md,
// Identity headers). In come the values of the headers that an app gets; out goes a JWT
// (RFC 7519) of a minute, signed by a key of this data directory, which an app verifies
// with the key set. It decides nothing, and reads no token: nothing here lets anybody in.
package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/internal/bounds"
)

// Type is the typ of a token's header.
const Type = "porchlight-id+jwt"

const (
	// Life is how long a token is good. It is sent again until half of it is over.
	Life = time.Minute
	// overlap is how long a new key is published before it signs, and how long the one
	// before it is published when it signs no more: apps keep the key set for minutes.
	overlap = 10 * time.Minute

	maxTokens = 4096 // remembered
)

// Claims are what a token says, besides when it was made and ends.
type Claims struct {
	Issuer   string // https origin of the root host
	Audience string // https origin of the app
	Subject  string // account id
	Email    string
	Role     string
	Name     string // of the computer
}

// Signer is safe for concurrent use.
type Signer struct {
	store *store.Store
	now   func() time.Time

	mu     sync.Mutex        // guards what follows
	keys   []key             // newest first; none before they are needed
	tokens map[Claims]*token // what was signed lately
}

type key struct {
	store.IdentityKey
	private ed25519.PrivateKey
	public  controlapi.JWK
}

// token was signed at a time by the clock on the wall, which goes on while the computer
// sleeps and may be set back.
type token struct {
	text   string
	key    string // id
	issued int64  // Unix seconds
}

// New reads no key yet, and makes none.
func New(s *store.Store, now func() time.Time) *Signer {
	return &Signer{store: s, now: now, tokens: map[Claims]*token{}}
}

// Token says who a visitor is. It may have been made up to half of Life ago.
func (s *Signer) Token(c Claims) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.need(); err != nil {
		return "", err
	}
	now := s.now()
	key, at := controlapi.SigningKey(s.keys, signsFrom, now), now.Unix()
	fresh := func(t *token) bool {
		return t.key == key.public.ID && t.issued <= at && at < t.issued+int64(Life/2/time.Second)
	}
	if t := s.tokens[c]; t != nil && fresh(t) {
		return t.text, nil
	}
	unsigned := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
		"iss": c.Issuer, "aud": c.Audience, "sub": c.Subject, "email": c.Email, "role": c.Role, "name": c.Name,
		"iat": at, "exp": at + int64(Life/time.Second),
	})
	unsigned.Header["typ"], unsigned.Header["kid"] = Type, key.public.ID
	text, err := unsigned.SignedString(key.private)
	if err != nil {
		return "", fmt.Errorf("sign who a visitor is: %w", err)
	}
	bounds.MakeRoom(s.tokens, maxTokens, func(t *token) bool { return !fresh(t) })
	s.tokens[c] = &token{text, key.public.ID, at}
	return text, nil
}

// KeySet has every key whose tokens may be about, and the one that signs next.
func (s *Signer) KeySet() (controlapi.KeySet, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.need(); err != nil {
		return controlapi.KeySet{}, err
	}
	return s.published(), nil
}

// Rotate makes a new key. It is published at once and signs after a while, so that whoever
// keeps the key set knows it by then; one that is on its way already stays the next one.
// With atOnce, after a leak, it signs at once, and all former ones end.
func (s *Signer) Rotate(atOnce bool) (controlapi.KeySet, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.need(); err != nil {
		return controlapi.KeySet{}, err
	}
	now := s.now()
	next := make([]store.IdentityKey, 1, 1+len(s.keys))
	next[0] = newKey()
	switch {
	case atOnce:
	case now.Before(s.keys[0].SignsFrom):
		return s.published(), nil
	default:
		next[0].SignsFrom = now.Add(overlap).UTC().Round(0)
		for _, k := range s.verifying(now) {
			next = append(next, k.IdentityKey)
		}
	}
	if err := s.keep(next); err != nil {
		return controlapi.KeySet{}, err
	}
	return s.published(), nil
}

// need reads the keys, and makes the first one where there is none. mu is held.
func (s *Signer) need() error {
	if s.keys != nil {
		return nil
	}
	stored, err := s.store.IdentityKeys()
	if err != nil {
		return err
	}
	if len(stored) == 0 {
		return s.keep([]store.IdentityKey{newKey()})
	}
	return s.use(stored)
}

func newKey() store.IdentityKey {
	seed := make([]byte, ed25519.SeedSize)
	rand.Read(seed)
	return store.IdentityKey{Seed: seed}
}

// keep stores keys, and uses them. mu is held.
func (s *Signer) keep(stored []store.IdentityKey) error {
	if err := s.store.SaveIdentityKeys(stored); err != nil {
		return fmt.Errorf("keep the keys that sign who visitors are: %w", err)
	}
	return s.use(stored)
}

func (s *Signer) use(stored []store.IdentityKey) error {
	keys := make([]key, 0, len(stored))
	for _, k := range stored {
		if len(k.Seed) != ed25519.SeedSize {
			return errors.New("a stored key that signs who visitors are is damaged")
		}
		private := ed25519.NewKeyFromSeed(k.Seed)
		keys = append(keys, key{k, private, controlapi.NewJWK(private.Public().(ed25519.PublicKey))})
	}
	s.keys = keys
	return nil
}

func signsFrom(k key) time.Time { return k.SignsFrom }

// verifying are all keys but those replaced for longer than overlap.
func (s *Signer) verifying(now time.Time) []key {
	return controlapi.VerifyingKeys(s.keys, signsFrom, overlap, now)
}

func (s *Signer) published() controlapi.KeySet {
	var set controlapi.KeySet
	for _, k := range s.verifying(s.now()) {
		set.Keys = append(set.Keys, k.public)
	}
	return set
}

package control

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// Rotating the signing key: the new one is published at once and signs a while
// later, when every node has read it and every agent has been told; the old one
// verifies for as long as a token it signed can be used.

// keyLead is how long a new key is known before it signs. Every waiting sync ends
// within controlapi.SyncWait, so every agent has heard of it by then.
const keyLead = 2 * time.Minute

// Keys are the secrets made at the first start: what this control plane signs
// tokens with, and what it knows its own words by.
type Keys struct{ *core }

// storedKeys is the row of secrets made at the first start.
type storedKeys struct {
	Signing []storedKey `json:"signing"` // newest first
	Sealing []byte      `json:"sealing"` // 32 bytes, for Keys.Seal
}

type storedKey struct {
	Seed      []byte    `json:"seed"` // of the Ed25519 key, RFC 8032
	CreatedAt time.Time `json:"createdAt"`
	SignsFrom time.Time `json:"signsFrom,omitzero"` // zero: since ever
}

// keyRing is storedKeys, ready to use. It is never changed.
type keyRing struct {
	signing  []signingKey // newest first, at least one
	sealing  []byte
	instance string
}

type signingKey struct {
	private   ed25519.PrivateKey
	public    string // PEM
	jwk       controlapi.JWK
	signsFrom time.Time
}

// signer is the newest key that may sign by now.
func (r *keyRing) signer(now time.Time) signingKey {
	for _, k := range r.signing {
		if !now.Before(k.signsFrom) {
			return k
		}
	}
	return r.signing[len(r.signing)-1]
}

// verifying are the keys whose tokens hold: all but those replaced for longer
// than a token can be used.
func (r *keyRing) verifying(now time.Time) []signingKey {
	for i := 1; i < len(r.signing); i++ {
		if !now.Before(r.signing[i-1].signsFrom.Add(controlapi.GrantMemory)) {
			return r.signing[:i]
		}
	}
	return r.signing
}

var errKeysGone = errors.New("the stored keys are gone")

// loadKeys reads the keys, making them when this store has none. Nodes that
// start together agree on those that were committed first.
func (s *core) loadKeys(ctx context.Context) (*keyRing, error) {
	made := storedKeys{
		Signing: []storedKey{newStoredKey(s.now())},
		Sealing: make([]byte, 32),
	}
	rand.Read(made.Sealing)
	kept, err := updated(ctx, s, func(tx *txn) (storedKeys, error) {
		kept, found, err := get[storedKeys](tx, keyKeys)
		if err != nil || found {
			return kept, err
		}
		return made, put(tx, keyKeys, made, 0)
	})
	if err != nil {
		return nil, err
	}
	return newKeyRing(kept)
}

func newStoredKey(now time.Time) storedKey {
	k := storedKey{Seed: make([]byte, ed25519.SeedSize), CreatedAt: now.UTC()}
	rand.Read(k.Seed)
	return k
}

func newKeyRing(k storedKeys) (*keyRing, error) {
	if len(k.Signing) == 0 || len(k.Sealing) != 32 {
		return nil, errors.New("the stored keys are damaged")
	}
	id := sha256.Sum256(append([]byte("instance\n"), k.Sealing...))
	ring := &keyRing{sealing: k.Sealing, instance: hex.EncodeToString(id[:4])}
	for _, key := range k.Signing {
		if len(key.Seed) != ed25519.SeedSize {
			return nil, errors.New("the stored signing key is damaged")
		}
		private := ed25519.NewKeyFromSeed(key.Seed)
		der, err := x509.MarshalPKIXPublicKey(private.Public())
		if err != nil {
			return nil, fmt.Errorf("encoding the public key: %w", err)
		}
		ring.signing = append(ring.signing, signingKey{
			private:   private,
			public:    string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
			jwk:       controlapi.NewJWK(private.Public().(ed25519.PublicKey)),
			signsFrom: key.SignsFrom,
		})
	}
	return ring, nil
}

// Rotate makes a new signing key. It signs after keyLead; until then, and for
// controlapi.GrantMemory after, the old one verifies, too. It refuses with
// CodeInvalid while an earlier rotation is under way.
func (s *Keys) Rotate(ctx context.Context) error {
	made := newStoredKey(s.now())
	made.SignsFrom = made.CreatedAt.Add(keyLead)
	next, err := updated(ctx, s.core, func(tx *txn) (*keyRing, error) {
		kept, err := find[storedKeys](tx, keyKeys, errKeysGone)
		if err != nil {
			return nil, err
		}
		ring, err := newKeyRing(kept)
		if err != nil {
			return nil, err
		}
		if tx.now.Before(kept.Signing[0].SignsFrom) {
			return nil, refuse(controlapi.CodeInvalid, "The key was replaced a moment ago. Wait until the new one is in use.")
		}
		kept.Signing = append([]storedKey{made}, kept.Signing[:len(ring.verifying(tx.now))]...)
		next, err := newKeyRing(kept)
		if err != nil {
			return nil, err
		}
		return next, put(tx, keyKeys, kept, 0)
	})
	if err != nil {
		return err
	}
	s.keyRing.Store(next)
	s.wakeAll()
	s.log.Info("a new signing key was made", "signs_from", made.SignsFrom)
	return nil
}

// readAgain notices the rotations of other nodes in the keys as they are stored now.
func (s *Keys) readAgain(stored storedKeys) {
	ring, err := newKeyRing(stored)
	if err != nil {
		s.log.Warn("the signing keys that are stored cannot be used", "err", err)
		return
	}
	before := s.Public()
	s.keyRing.Store(ring)
	if !slices.Equal(before, s.Public()) {
		s.wakeAll() // the keys are part of every snapshot
	}
}

// keysStored are the keys as they are stored now, and made ready to use.
func (s *core) keysStored(ctx context.Context) (stored storedKeys, ring *keyRing, err error) {
	stored, err = viewedOf(ctx, s, kv.Rows{Keys: []string{keyKeys}}, func(tx kv.Tx) (storedKeys, error) {
		return find[storedKeys](tx, keyKeys, errKeysGone)
	})
	if err != nil {
		return storedKeys{}, nil, err
	}
	ring, err = newKeyRing(stored)
	return stored, ring, err
}

// Public are the keys that verify what this control plane signs, as PEM
// (PKIX, Ed25519), newest first.
func (s *Keys) Public() []string {
	var out []string
	for _, k := range s.keyRing.Load().verifying(s.now()) {
		out = append(out, k.public)
	}
	return out
}

// Set is Public as a key set (RFC 7517).
func (s *Keys) Set() controlapi.KeySet {
	var set controlapi.KeySet
	for _, k := range s.keyRing.Load().verifying(s.now()) {
		set.Keys = append(set.Keys, k.jwk)
	}
	return set
}

// Key is a signing key as the operator sees it.
type Key struct {
	PublicKey string    `json:"publicKey"` // PEM (PKIX, Ed25519)
	CreatedAt time.Time `json:"createdAt"`
	// SignsFrom is when it signs for the first time; before, it is only made
	// known.
	SignsFrom time.Time `json:"signsFrom"`
	// VerifiesUntil is when tokens it signed stop being accepted; zero while no
	// newer key has replaced it.
	VerifiesUntil time.Time `json:"verifiesUntil,omitzero"`
	Signs         bool      `json:"signs"` // now
}

// List lists the keys whose tokens are accepted now, newest first. They are read
// from the store, so a rotation at another node is among them.
func (s *Keys) List(ctx context.Context) ([]Key, error) {
	stored, ring, err := s.keysStored(ctx)
	if err != nil {
		return nil, err
	}
	now := s.now()
	signer := ring.signer(now).public
	var out []Key
	for i, k := range ring.verifying(now) {
		kept := stored.Signing[i]
		key := Key{PublicKey: k.public, CreatedAt: kept.CreatedAt, SignsFrom: kept.SignsFrom, Signs: k.public == signer}
		if key.SignsFrom.IsZero() {
			key.SignsFrom = key.CreatedAt
		}
		if i > 0 {
			key.VerifiesUntil = ring.signing[i-1].signsFrom.Add(controlapi.GrantMemory)
		}
		out = append(out, key)
	}
	return out, nil
}

// Signing is the one of Public whose private half signs now.
func (s *Keys) Signing() string { return s.keyRing.Load().signer(s.now()).public }

// Instance is eight characters that tell this control plane's cookies from
// those of another on the same host, as cookies ignore ports.
func (s *Keys) Instance() string { return s.keyRing.Load().instance }

// PeerSecret is 32 bytes that the nodes on one store share, by which their
// relays know each other.
func (s *Keys) PeerSecret() ([]byte, error) {
	return hkdf.Key(sha256.New, s.keyRing.Load().sealing, nil, "porchlight peers 1", 32)
}

// Seal signs text for this control plane, so that a value handed to a browser
// and given back is known to be ours. The result is URL- and cookie-safe. It
// hides nothing.
func (s *Keys) Seal(purpose, text string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(text)) + "." +
		base64.RawURLEncoding.EncodeToString(s.seal(purpose, text))
}

// Unseal returns what Seal was given, when it was sealed here for the same
// purpose.
func (s *Keys) Unseal(purpose, sealed string) (string, bool) {
	body, sum, ok := strings.Cut(sealed, ".")
	if !ok {
		return "", false
	}
	text, err1 := base64.RawURLEncoding.DecodeString(body)
	mac, err2 := base64.RawURLEncoding.DecodeString(sum)
	if err1 != nil || err2 != nil || !hmac.Equal(mac, s.seal(purpose, string(text))) {
		return "", false
	}
	return string(text), true
}

func (s *core) seal(purpose, text string) []byte {
	h := hmac.New(sha256.New, s.keyRing.Load().sealing)
	fmt.Fprintf(h, "%s\n%s", purpose, text)
	return h.Sum(nil)
}

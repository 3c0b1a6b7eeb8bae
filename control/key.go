package control

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/feed"
	"porchlight/control/kv"
)

// Rotating the keys: the new ones are published at once and used a while later, when
// every node has read them and every agent has been told. The old signing key verifies
// for as long as a token it signed can be used, and the old sealing secret opens for
// formerLife. After a leak both end at once instead.

const (
	// keyLead is how long new keys are known before they are used. Every agent that is not
	// away has heard of them by then.
	keyLead = 2 * time.Minute
	// formerLife is how long after a rotation the sealing secret before it still opens, and
	// nodes with certificates from it are let in. A node that has not read the new one by
	// then cannot read the store, and a sign-in that was half done has come to its end.
	formerLife = 10 * time.Minute
)

// Keys are the secrets made at the first start: what this control plane signs
// tokens with, and what it knows its own words by.
type Keys struct{ *core }

// storedKeys is the row of secrets made at the first start.
type storedKeys struct {
	Signing []storedKey `json:"signing"` // newest first
	Sealing []byte      `json:"sealing"` // 32 bytes, for Keys.Seal and PeerSecrets; the newest
	// SealsFrom is when Sealing is used for the first time; zero: since ever.
	SealsFrom time.Time `json:"sealsFrom,omitzero"`
	// Former is the Sealing before, which counts until FormerUntil.
	Former      []byte    `json:"former,omitempty"`
	FormerUntil time.Time `json:"formerUntil,omitzero"`
	// Marks is the first Sealing there was, for what is kept for longer than a rotation
	// takes: see core.mark. Absent while there was no other.
	Marks []byte `json:"marks,omitempty"`
	// Rotations counts the rotations, so that no node's clock decides which keys are the
	// newer ones. Absent in rows of before it was kept.
	Rotations uint64 `json:"rotations,omitempty"`
}

// olderThan says whether k was stored before other.
func (k storedKeys) olderThan(other storedKeys) bool {
	if k.Rotations != other.Rotations {
		return k.Rotations < other.Rotations
	}
	return k.Signing[0].CreatedAt.Before(other.Signing[0].CreatedAt)
}

type storedKey struct {
	Seed      []byte    `json:"seed"` // of the Ed25519 key, RFC 8032
	CreatedAt time.Time `json:"createdAt"`
	SignsFrom time.Time `json:"signsFrom,omitzero"` // zero: since ever
}

// keyRing is storedKeys, ready to use. It is never changed.
type keyRing struct {
	signing  []signingKey // newest first, at least one
	stored   storedKeys
	marks    []byte
	instance string
	since    time.Time // when this process began to use it
}

type signingKey struct {
	private   ed25519.PrivateKey
	public    string // PEM
	jwk       controlapi.JWK
	signsFrom time.Time
}

func signsFrom(k signingKey) time.Time { return k.signsFrom }

// signer is the newest key that may sign by now.
func (r *keyRing) signer(now time.Time) signingKey {
	return controlapi.SigningKey(r.signing, signsFrom, now)
}

// verifying are the keys whose tokens hold: all but those replaced for longer
// than a token can be used.
func (r *keyRing) verifying(now time.Time) []signingKey {
	return controlapi.VerifyingKeys(r.signing, signsFrom, controlapi.GrantMemory, now)
}

var errKeysGone = errors.New("the stored keys are gone")

// loadKeys reads the keys, making them when this store has none. Nodes that
// start together agree on those that were committed first.
func (s *core) loadKeys(ctx context.Context) (*keyRing, error) {
	made := storedKeys{
		Signing: []storedKey{newStoredKey(s.now())},
		Sealing: newSealing(),
	}
	kept, err := updated(ctx, s, func(tx *txn) (storedKeys, error) {
		kept, found := get[storedKeys](tx, keyKeys)
		if !found {
			kept = made
			tx.put(keyKeys, made, 0)
		}
		return kept, nil
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

func newSealing() []byte {
	secret := make([]byte, sealingSize)
	rand.Read(secret)
	return secret
}

func newKeyRing(k storedKeys) (*keyRing, error) {
	marks := k.Marks
	if marks == nil {
		marks = k.Sealing
	}
	if len(k.Signing) == 0 || len(k.Sealing) != sealingSize || len(marks) != sealingSize || k.Former != nil && len(k.Former) != sealingSize {
		return nil, errors.New("the stored keys are damaged")
	}
	id := sha256.Sum256(append([]byte("instance\n"), marks...))
	ring := &keyRing{stored: k, marks: marks, instance: hex.EncodeToString(id[:4]), since: time.Now()}
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

// Rotate makes a new signing key and a new sealing secret. They are used after keyLead.
// The old signing key verifies until then and for controlapi.GrantMemory after, the old
// secret opens for formerLife. It refuses with CodeInvalid while an earlier rotation is
// under way.
func (s *Keys) Rotate(ctx context.Context) error {
	made, sealing := newStoredKey(s.now()), newSealing()
	made.SignsFrom = made.CreatedAt.Add(keyLead)
	return s.replace(ctx, func(tx *txn, kept *storedKeys, ring *keyRing) error {
		if tx.now.Before(kept.Signing[0].SignsFrom) || tx.now.Before(kept.FormerUntil) {
			return refuse(controlapi.CodeInvalid, "The keys were replaced a moment ago. Wait ten minutes, until those before have ended; after a leak, end them now with: key rotate --now")
		}
		kept.Signing = append([]storedKey{made}, kept.Signing[:len(ring.verifying(tx.now))]...)
		kept.Former, kept.FormerUntil = kept.Sealing, made.CreatedAt.Add(formerLife)
		kept.Sealing, kept.SealsFrom = sealing, made.SignsFrom
		return nil
	})
}

// RotateNow is Rotate after a leak: what the old keys signed and sealed counts no longer,
// and neither do those of a rotation that is under way. The other nodes follow when they
// look next, and agents within a poll.
func (s *Keys) RotateNow(ctx context.Context) error {
	made, sealing := newStoredKey(s.now()), newSealing()
	return s.replace(ctx, func(_ *txn, kept *storedKeys, _ *keyRing) error {
		*kept = storedKeys{Signing: []storedKey{made}, Sealing: sealing, Marks: kept.Marks, Rotations: kept.Rotations}
		return nil
	})
}

// replace changes the stored keys, and uses what they are then.
func (s *Keys) replace(ctx context.Context, change func(*txn, *storedKeys, *keyRing) error) error {
	next, err := updated(ctx, s.core, func(tx *txn) (*keyRing, error) {
		kept, err := find[storedKeys](tx, keyKeys, errKeysGone)
		if err != nil {
			return nil, err
		}
		ring, err := newKeyRing(kept)
		if err != nil {
			return nil, err
		}
		kept.Marks = ring.marks
		kept.Rotations++
		if err := change(tx, &kept, ring); err != nil {
			return nil, err
		}
		tx.put(keyKeys, kept, 0)
		return newKeyRing(kept)
	})
	if err != nil {
		return err
	}
	s.keyRing.Store(next)
	s.Feed.WakeAll()
	s.log.Info("new keys were made", "used_from", next.stored.Signing[0].SignsFrom, "former_until", next.stored.FormerUntil)
	return nil
}

// readAgain notices the rotations of other nodes in the keys as they were stored when they
// were read. Such a read may have begun before keys that are in use already, so older ones
// are believed only where the store goes on telling them, as after a restore.
func (s *Keys) readAgain(stored storedKeys) {
	ring, err := newKeyRing(stored)
	if err != nil {
		s.log.Warn("the signing keys that are stored cannot be used", "err", err)
		return
	}
	before := s.keyRing.Load()
	if ring.signing[0].public == before.signing[0].public || stored.olderThan(before.stored) && time.Since(before.since) < feed.LookEvery {
		return
	}
	if s.keyRing.CompareAndSwap(before, ring) {
		s.Feed.WakeAll() // the keys are part of every snapshot
	}
}

// keysStored are the keys as they are stored now, and made ready to use.
func (s *core) keysStored(ctx context.Context) (stored storedKeys, ring *keyRing, err error) {
	stored, err = viewedOf(ctx, s, kv.Rows{Keys: []string{keyKeys}}, func(tx *txn) (storedKeys, error) {
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

const sealingSize = 32 // bytes

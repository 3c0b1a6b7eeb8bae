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
)

// storedKeys is the row of secrets made at the first start.
type storedKeys struct {
	Signing []storedKey `json:"signing"` // newest first
	Sealing []byte      `json:"sealing"` // 32 bytes, for Service.Seal
}

type storedKey struct {
	Seed      []byte    `json:"seed"` // of the Ed25519 key, RFC 8032
	CreatedAt time.Time `json:"createdAt"`
}

// keyRing is storedKeys, ready to use.
type keyRing struct {
	public   []string // PEM, newest first
	sealing  []byte
	instance string
}

// loadKeys reads the keys, making them when this store has none. Nodes that
// start together agree on those of whoever committed first.
func (s *Service) loadKeys(ctx context.Context) (keyRing, error) {
	fresh := storedKeys{
		Signing: []storedKey{{Seed: make([]byte, ed25519.SeedSize), CreatedAt: s.now().UTC()}},
		Sealing: make([]byte, 32),
	}
	rand.Read(fresh.Signing[0].Seed)
	rand.Read(fresh.Sealing)

	var kept storedKeys
	err := s.update(ctx, func(tx *txn) error {
		var found bool
		var err error
		if kept, found, err = get[storedKeys](tx, keyKeys); err != nil || found {
			return err
		}
		kept = fresh
		return put(tx, keyKeys, fresh, 0)
	})
	if err != nil {
		return keyRing{}, err
	}
	return newKeyRing(kept)
}

func newKeyRing(k storedKeys) (keyRing, error) {
	if len(k.Signing) == 0 || len(k.Sealing) != 32 {
		return keyRing{}, errors.New("the stored keys are damaged")
	}
	id := sha256.Sum256(append([]byte("instance\n"), k.Sealing...))
	ring := keyRing{sealing: k.Sealing, instance: hex.EncodeToString(id[:4])}
	for _, key := range k.Signing {
		if len(key.Seed) != ed25519.SeedSize {
			return keyRing{}, errors.New("the stored signing key is damaged")
		}
		der, err := x509.MarshalPKIXPublicKey(ed25519.NewKeyFromSeed(key.Seed).Public())
		if err != nil {
			return keyRing{}, fmt.Errorf("encoding the public key: %w", err)
		}
		ring.public = append(ring.public, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
	}
	return ring, nil
}

// PublicKeys are the keys that verify what this control plane signs, as PEM
// (PKIX, Ed25519), newest first.
func (s *Service) PublicKeys() []string { return append([]string(nil), s.keys.public...) }

// Instance is eight characters that tell this control plane's cookies from
// those of another on the same host, as cookies ignore ports.
func (s *Service) Instance() string { return s.keys.instance }

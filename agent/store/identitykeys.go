package store

import "time"

// identityKeysKey is in snapshotBucket: the keys are of one computer, and end with it.
var identityKeysKey = []byte("identity.keys")

// IdentityKey signs who a visitor is.
type IdentityKey struct {
	Seed      []byte    `json:"seed"`               // of the Ed25519 key, RFC 8032
	SignsFrom time.Time `json:"signsFrom,omitzero"` // zero: since ever
}

// IdentityKeys are the keys that SaveIdentityKeys kept, newest first; none at first.
func (s *Store) IdentityKeys() (keys []IdentityKey, err error) {
	_, err = s.load(snapshotBucket, identityKeysKey, "the record of the keys that sign who visitors are", &keys)
	return keys, err
}

// SaveIdentityKeys replaces them.
func (s *Store) SaveIdentityKeys(keys []IdentityKey) error {
	return s.save(snapshotBucket, identityKeysKey, keys)
}

package store

import (
	"porchlight/internal/boltfile"
)

var (
	metaBucket = []byte("meta")

	instanceIDKey  = []byte("instance.id")
	instanceKeyKey = []byte("instance.key")
)

// Instance tells one data directory from every other.
type Instance struct {
	// ID is 8 hexadecimal digits. It is no secret: it is part of the names of
	// cookies, because cookies do not tell ports apart and two Porchlights may
	// serve the same host name on two ports.
	ID string
	// Key is 32 random bytes that never leave this computer.
	Key []byte
}

// Instance returns the identity of this data directory, which a migration
// made.
func (s *Store) Instance() (in Instance, err error) {
	err = s.view(func(tx *boltfile.Tx) error {
		b := tx.Bucket(metaBucket)
		in.ID = string(b.Get(instanceIDKey))
		in.Key = append([]byte(nil), b.Get(instanceKeyKey)...)
		return nil
	})
	return in, err
}

package store

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

var (
	metaBucket = bucket("meta")

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

// Instance returns the identity of this data directory, making it the first
// time it is asked for.
func (s *Store) Instance() (Instance, error) {
	in, err := s.instance()
	if err != nil || in.ID != "" {
		return in, err
	}
	err = s.update(func(tx *bolt.Tx) error {
		b := tx.Bucket(metaBucket)
		if b.Get(instanceIDKey) != nil {
			return nil // another caller was first
		}
		var id [4]byte
		key := make([]byte, 32)
		rand.Read(id[:])
		rand.Read(key)
		if err := b.Put(instanceIDKey, []byte(hex.EncodeToString(id[:]))); err != nil {
			return err
		}
		return b.Put(instanceKeyKey, key)
	})
	if err != nil {
		return Instance{}, fmt.Errorf("name this data directory: %w", err)
	}
	return s.instance()
}

func (s *Store) instance() (in Instance, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		b := tx.Bucket(metaBucket)
		in.ID = string(b.Get(instanceIDKey))
		in.Key = append([]byte(nil), b.Get(instanceKeyKey)...)
		return nil
	})
	return in, err
}

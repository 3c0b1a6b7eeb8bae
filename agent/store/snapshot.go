package store

import (
	"encoding/json"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"porchlight/control/controlapi"
)

var (
	snapshotBucket = []byte("snapshot")

	snapshotKey = []byte("last")
	contactKey  = []byte("contact")
)

// SaveSnapshot keeps the last snapshot of the control plane and when it was
// last known to hold, replacing the one before.
func (s *Store) SaveSnapshot(snap controlapi.Snapshot, contact time.Time) error {
	raw, err := json.Marshal(snap)
	if err != nil {
		return fmt.Errorf("encode the snapshot: %w", err)
	}
	at, err := contact.UTC().MarshalText()
	if err != nil {
		return fmt.Errorf("encode the time of the snapshot: %w", err)
	}
	return s.update(func(tx *bolt.Tx) error {
		b := tx.Bucket(snapshotBucket)
		if err := b.Put(snapshotKey, raw); err != nil {
			return err
		}
		return b.Put(contactKey, at)
	})
}

// SaveContact moves the time at which the stored snapshot was last known to
// hold.
func (s *Store) SaveContact(contact time.Time) error {
	at, err := contact.UTC().MarshalText()
	if err != nil {
		return fmt.Errorf("encode the time of the snapshot: %w", err)
	}
	return s.update(func(tx *bolt.Tx) error { return tx.Bucket(snapshotBucket).Put(contactKey, at) })
}

// Snapshot returns what SaveSnapshot kept. Without one ok is false.
func (s *Store) Snapshot() (snap controlapi.Snapshot, contact time.Time, ok bool, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		b := tx.Bucket(snapshotBucket)
		raw := b.Get(snapshotKey)
		if raw == nil {
			return nil
		}
		if err := json.Unmarshal(raw, &snap); err != nil {
			return fmt.Errorf("the stored snapshot is damaged: %w", err)
		}
		if err := contact.UnmarshalText(b.Get(contactKey)); err != nil {
			return fmt.Errorf("the time of the stored snapshot is damaged: %w", err)
		}
		ok = true
		return nil
	})
	return snap, contact, ok, err
}

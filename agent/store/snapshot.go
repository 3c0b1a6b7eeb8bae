package store

import (
	"errors"
	"fmt"
	"time"

	"porchlight/control/controlapi"
	"porchlight/internal/boltfile"
)

var (
	snapshotBucket = []byte("snapshot")

	snapshotKey = []byte("last")
	contactKey  = []byte("contact")
)

// SaveSnapshot keeps the last snapshot of the control plane and when it was
// last known to hold, replacing the one before.
func (s *Store) SaveSnapshot(snap controlapi.Snapshot, contact time.Time) error {
	return s.update(func(tx *boltfile.Tx) error {
		b := tx.Bucket(snapshotBucket)
		return errors.Join(put(b, snapshotKey, snap), putTime(b, contactKey, contact))
	})
}

// SaveContact moves the time at which the stored snapshot was last known to
// hold.
func (s *Store) SaveContact(contact time.Time) error {
	return s.saveTime(snapshotBucket, contactKey, contact)
}

// Snapshot returns what SaveSnapshot kept. Without one ok is false.
func (s *Store) Snapshot() (snap controlapi.Snapshot, contact time.Time, ok bool, err error) {
	err = s.view(func(tx *boltfile.Tx) error {
		b := tx.Bucket(snapshotBucket)
		if ok, err = get(b, snapshotKey, "the stored snapshot", &snap); !ok {
			return err
		}
		if err := contact.UnmarshalText(b.Get(contactKey)); err != nil {
			return fmt.Errorf("the time of the stored snapshot is damaged: %w", err)
		}
		return nil
	})
	return snap, contact, ok, err
}

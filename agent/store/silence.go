package store

import (
	"encoding/json"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
)

var silenceKey = []byte("silence")

// Silence is how long the control plane had been silent when the agent last
// looked. With it a restart goes on counting where the last run stopped, whatever
// happened to the clock in between.
type Silence struct {
	// Contact is the last word of the control plane that the count began at. A
	// record of another contact is void.
	Contact time.Time     `json:"contact"`
	Seen    time.Time     `json:"seen"`  // when the agent last looked
	Spent   time.Duration `json:"spent"` // the silence up to Seen, nanoseconds
}

// SaveSilence replaces the record.
func (s *Store) SaveSilence(sil Silence) error {
	sil.Contact, sil.Seen = sil.Contact.UTC(), sil.Seen.UTC()
	raw, err := json.Marshal(sil)
	if err != nil {
		return fmt.Errorf("encode a silence: %w", err)
	}
	return s.update(func(tx *bolt.Tx) error { return tx.Bucket(snapshotBucket).Put(silenceKey, raw) })
}

// Silence returns the record; ok is false when there is none.
func (s *Store) Silence() (sil Silence, ok bool, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		raw := tx.Bucket(snapshotBucket).Get(silenceKey)
		if raw == nil {
			return nil
		}
		if err := json.Unmarshal(raw, &sil); err != nil {
			return fmt.Errorf("the record of the control plane's silence is damaged: %w", err)
		}
		ok = true
		return nil
	})
	return sil, ok, err
}

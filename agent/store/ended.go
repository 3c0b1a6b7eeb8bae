package store

import (
	"encoding/json"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Keys of snapshotBucket.
var (
	controlTimeKey = []byte("time")
	endedKey       = []byte("ended")
)

// Share is one app of one person that ends.
type Share struct {
	AccountID string    `json:"account"`
	AppID     string    `json:"app"`
	Until     time.Time `json:"until"` // UTC
}

// SaveControlTime keeps what the control plane's clock was last known to show.
func (s *Store) SaveControlTime(at time.Time) error {
	raw, err := at.UTC().MarshalText()
	if err != nil {
		return fmt.Errorf("encode a time: %w", err)
	}
	return s.update(func(tx *bolt.Tx) error { return tx.Bucket(snapshotBucket).Put(controlTimeKey, raw) })
}

// ControlTime is what SaveControlTime kept, zero where there is nothing.
func (s *Store) ControlTime() (at time.Time, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		if raw := tx.Bucket(snapshotBucket).Get(controlTimeKey); raw != nil {
			return at.UnmarshalText(raw)
		}
		return nil
	})
	return at, err
}

// SaveEnded keeps of which shares the owner was told that they ended.
func (s *Store) SaveEnded(shares []Share) error {
	raw, err := json.Marshal(shares)
	if err != nil {
		return fmt.Errorf("encode which shares have ended: %w", err)
	}
	return s.update(func(tx *bolt.Tx) error { return tx.Bucket(snapshotBucket).Put(endedKey, raw) })
}

// Ended is what SaveEnded kept.
func (s *Store) Ended() (shares []Share, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		if raw := tx.Bucket(snapshotBucket).Get(endedKey); raw != nil {
			return json.Unmarshal(raw, &shares)
		}
		return nil
	})
	return shares, err
}

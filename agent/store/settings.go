package store

import (
	"encoding/json"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"porchlight/agent/agentapi"
)

var settingsBucket = []byte("settings")

// Keys of settingsBucket and metaBucket.
var (
	ownerSettingsKey = []byte("owner")
	darkKey          = []byte("dark.since")
	updateKey        = []byte("update")
)

// Settings returns what the owner chose. What they never did, or an earlier version wrote
// nothing of, is the default.
func (s *Store) Settings() (settings agentapi.Settings, err error) {
	settings = agentapi.DefaultSettings()
	err = s.view(func(tx *bolt.Tx) error {
		raw := tx.Bucket(settingsBucket).Get(ownerSettingsKey)
		if raw == nil {
			return nil
		}
		if err := json.Unmarshal(raw, &settings); err != nil {
			return fmt.Errorf("the stored settings are damaged: %w", err)
		}
		return nil
	})
	return settings, err
}

// Update returns what is known of newer versions, by the words of whoever keeps it; nil
// for nothing.
func (s *Store) Update() (raw []byte, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		raw = append(raw, tx.Bucket(settingsBucket).Get(updateKey)...)
		return nil
	})
	return raw, err
}

// SaveUpdate replaces it.
func (s *Store) SaveUpdate(raw []byte) error {
	return s.update(func(tx *bolt.Tx) error { return tx.Bucket(settingsBucket).Put(updateKey, raw) })
}

// SaveSettings replaces them.
func (s *Store) SaveSettings(settings agentapi.Settings) error {
	raw, err := json.Marshal(settings)
	if err != nil {
		return fmt.Errorf("encode the settings: %w", err)
	}
	return s.update(func(tx *bolt.Tx) error { return tx.Bucket(settingsBucket).Put(ownerSettingsKey, raw) })
}

// DarkSince returns when the owner closed everything; nil when it is not closed.
// A damaged record is an error: to skip it would open everything again.
func (s *Store) DarkSince() (since *time.Time, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		raw := tx.Bucket(metaBucket).Get(darkKey)
		if raw == nil {
			return nil
		}
		var at time.Time
		if err := at.UnmarshalText(raw); err != nil {
			return fmt.Errorf("the record that everything is closed is damaged: %w", err)
		}
		since = &at
		return nil
	})
	return since, err
}

// SetDark keeps that everything is closed since then; nil: that it is open.
func (s *Store) SetDark(since *time.Time) error {
	if since == nil {
		return s.update(func(tx *bolt.Tx) error { return tx.Bucket(metaBucket).Delete(darkKey) })
	}
	raw, err := since.UTC().MarshalText()
	if err != nil {
		return fmt.Errorf("encode a time: %w", err)
	}
	return s.update(func(tx *bolt.Tx) error { return tx.Bucket(metaBucket).Put(darkKey, raw) })
}

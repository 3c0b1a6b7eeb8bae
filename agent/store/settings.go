package store

import (
	"time"

	"porchlight/agent/agentapi"
	"porchlight/internal/boltfile"
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
	_, err = s.load(settingsBucket, ownerSettingsKey, "the record of the settings", &settings)
	return settings, err
}

// Update returns what is known of newer versions, by the words of whoever keeps it; nil
// for nothing.
func (s *Store) Update() (raw []byte, err error) {
	err = s.view(func(tx *boltfile.Tx) error {
		raw = append(raw, tx.Bucket(settingsBucket).Get(updateKey)...)
		return nil
	})
	return raw, err
}

// SaveUpdate replaces it.
func (s *Store) SaveUpdate(raw []byte) error {
	return s.update(func(tx *boltfile.Tx) error { return tx.Bucket(settingsBucket).Put(updateKey, raw) })
}

// SaveSettings replaces them.
func (s *Store) SaveSettings(settings agentapi.Settings) error {
	return s.save(settingsBucket, ownerSettingsKey, settings)
}

// DarkSince returns when the owner closed everything; nil when it is not closed.
// A damaged record is an error: to skip it would open everything again.
func (s *Store) DarkSince() (*time.Time, error) {
	at, ok, err := s.loadTime(metaBucket, darkKey, "the record that everything is closed")
	if !ok {
		return nil, err
	}
	return &at, nil
}

// SetDark keeps that everything is closed since then; nil: that it is open.
func (s *Store) SetDark(since *time.Time) error {
	if since == nil {
		return s.update(func(tx *boltfile.Tx) error { return tx.Bucket(metaBucket).Delete(darkKey) })
	}
	return s.saveTime(metaBucket, darkKey, *since)
}

package store

import (
	"encoding/json"
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

// Update reads what is known of newer versions into the value of whoever keeps it. What
// cannot be read is asked for anew, and no reason not to start.
func (s *Store) Update(into any) error {
	return s.view(func(tx *boltfile.Tx) error {
		_ = json.Unmarshal(tx.Bucket(settingsBucket).Get(updateKey), into)
		return nil
	})
}

// SaveUpdate replaces it.
func (s *Store) SaveUpdate(known any) error { return s.save(settingsBucket, updateKey, known) }

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

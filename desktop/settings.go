package desktop

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"porchlight/internal/durable"
	"porchlight/internal/words"
)

// settingsFile inside the data directory (0600): what the desktop app remembers
// for itself. Nothing secret, and nothing the agent needs.
const settingsFile = "desktop.json"

// settings are safe for concurrent use.
type settings struct {
	path string

	mu     sync.Mutex
	values settingsValues
}

type settingsValues struct {
	// Panel is what the tray icon is drawn for, "dark" or "light", or "outline" for a
	// panel of any colour; empty: as far as this system tells. The owner sets it.
	Panel string `json:"panel,omitempty"`
	// Welcomed is true once the first start was done; see ui.Desktop.
	Welcomed bool `json:"welcomed,omitempty"`
	// TrustOffered is true once the owner answered whether browsers here are to trust
	// this computer's own authority.
	TrustOffered bool `json:"trustOffered,omitempty"`
	// Appearance of the window: "light", "dark", or empty to follow the system.
	Appearance string `json:"appearance,omitempty"`
	// Shortcut is true while the owner wants keys that open the palette from anywhere.
	Shortcut bool `json:"shortcut,omitempty"`
	// AtLogin is the program that was to start at login when the owner asked for it;
	// empty when they did not.
	AtLogin string `json:"atLogin,omitempty"`
	// SecretFile is true once the owner chose to keep the owner secret in a file,
	// for want of a keychain.
	SecretFile bool `json:"secretFile,omitempty"`
	// LastNotice is the id of the newest notice shown, LastGrant when the
	// newest connected app that was announced was let in.
	LastNotice uint64    `json:"lastNotice"`
	LastGrant  time.Time `json:"lastGrant,omitzero"`
	// Server is the one this computer was last seen connected to, or its own.
	Server string `json:"server,omitempty"`
	// Closed is true once the owner was told that closing the window quits nothing.
	Closed bool `json:"closed,omitempty"`
}

// openSettings reads the settings of a data directory. A file that cannot be
// understood counts as empty and is written anew at the next change: nothing in
// it is worth refusing to start.
func openSettings(dataDir string) (*settings, error) {
	s := &settings{path: filepath.Join(dataDir, settingsFile)}
	raw, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, words.Errorf("Porchlight cannot read its settings: %w", err)
	}
	if json.Unmarshal(raw, &s.values) != nil {
		s.values = settingsValues{}
	}
	return s, nil
}

func (s *settings) get() settingsValues {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values
}

// change applies fn and writes the file; where that fails, nothing is changed.
// Its error is a sentence: it reaches the owner who moved a switch.
func (s *settings) change(fn func(*settingsValues)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.values
	fn(&next)
	if next == s.values {
		return nil
	}
	raw, err := json.MarshalIndent(next, "", "  ")
	if err == nil {
		err = durable.Replace(s.path, append(raw, '\n'))
	}
	if err != nil {
		return words.Errorf("Porchlight cannot keep its settings, so nothing was changed. Is the disk full, or read-only? (%w)", err)
	}
	s.values = next
	return nil
}

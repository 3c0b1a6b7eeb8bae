//go:build !windows

package autostart

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"porchlight/internal/durable"
	"porchlight/internal/words"
)

// Enable has the app at executable start at login, again or anew. The system has a file for
// that: entryPath is where, and entryFor what is in it.
func Enable(executable string) error {
	path, err := entryPath()
	if err != nil {
		return words.Errorf("Porchlight cannot start at login: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return words.Errorf("Porchlight cannot start at login: %w", err)
	}
	if err := durable.Replace(path, []byte(entryFor(executable))); err != nil {
		return words.Errorf("Porchlight cannot start at login: %w", err)
	}
	return nil
}

// Disable undoes Enable; it is no error when there is nothing to undo.
func Disable() error {
	path, err := entryPath()
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return words.Errorf("Porchlight still starts at login: %w", err)
	}
	return nil
}

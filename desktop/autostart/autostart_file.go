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

// Where a system has a file that starts the app: entryPath is where, and entryFor what is
// in it.

func enable(executable string) error {
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

func disable() error {
	path, err := entryPath()
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return words.Errorf("Porchlight still starts at login: %w", err)
	}
	return nil
}

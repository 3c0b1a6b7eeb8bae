package autostart

import (
	"errors"
	"fmt"
	"porchlight/internal/words"

	"golang.org/x/sys/windows/registry"
)

const (
	runKey    = `Software\Microsoft\Windows\CurrentVersion\Run`
	valueName = "Porchlight"
)

// Enabled says whether the app at executable starts at login.
func Enabled(executable string) (bool, error) {
	key, err := registry.OpenKey(registry.CURRENT_USER, runKey, registry.QUERY_VALUE)
	if err != nil {
		return false, fmt.Errorf("look whether Porchlight starts at login: %w", err)
	}
	defer key.Close()
	value, _, err := key.GetStringValue(valueName)
	if errors.Is(err, registry.ErrNotExist) {
		return false, nil
	}
	return value == command(executable), err
}

// Enable has the app at executable start at login, again or anew.
func Enable(executable string) error {
	key, _, err := registry.CreateKey(registry.CURRENT_USER, runKey, registry.SET_VALUE)
	if err != nil {
		return words.Errorf("Porchlight cannot start at login: %w", err)
	}
	defer key.Close()
	if err := key.SetStringValue(valueName, command(executable)); err != nil {
		return words.Errorf("Porchlight cannot start at login: %w", err)
	}
	return nil
}

// Disable undoes Enable; it is no error when there is nothing to undo.
func Disable() error {
	key, err := registry.OpenKey(registry.CURRENT_USER, runKey, registry.SET_VALUE)
	if err != nil {
		return words.Errorf("Porchlight still starts at login: %w", err)
	}
	defer key.Close()
	if err := key.DeleteValue(valueName); err != nil && !errors.Is(err, registry.ErrNotExist) {
		return words.Errorf("Porchlight still starts at login: %w", err)
	}
	return nil
}

// command quotes the path; a path of Windows holds no quotation mark.
func command(executable string) string { return `"` + executable + `" ` + argument }

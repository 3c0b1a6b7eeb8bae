package autostart

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"porchlight/internal/durable"
	"porchlight/internal/words"
)

// entryName within the autostart directory (Desktop Application Autostart
// Specification).
const entryName = "porchlight.desktop"

func entryPath() (string, error) {
	config, err := os.UserConfigDir()
	if err != nil {
		return "", words.Errorf("Porchlight cannot start at login: %w", err)
	}
	return filepath.Join(config, "autostart", entryName), nil
}

func enabled(executable string) (bool, error) {
	path, err := entryPath()
	if err != nil {
		return false, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	on := false
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), "=")
		switch strings.TrimSpace(key) {
		case "Exec":
			on = strings.TrimSpace(value) == command(executable)
		case "Hidden", "X-GNOME-Autostart-enabled":
			// A session's own settings switch an entry off so.
			if off := strings.TrimSpace(value); (off == "true") == (strings.TrimSpace(key) == "Hidden") {
				return false, nil
			}
		}
	}
	return on, lines.Err()
}

func enable(executable string) error {
	path, err := entryPath()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return words.Errorf("Porchlight cannot start at login: %w", err)
	}
	entry := "[Desktop Entry]\nType=Application\nName=Porchlight\nIcon=porchlight\nTerminal=false\nExec=" + command(executable) + "\n"
	if err := durable.Replace(path, []byte(entry)); err != nil {
		return words.Errorf("Porchlight cannot start at login: %w", err)
	}
	return nil
}

func disable() error {
	path, err := entryPath()
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return words.Errorf("Porchlight still starts at login: %w", err)
	}
	return nil
}

// command is an Exec line: quoted as the Desktop Entry Specification has it, in
// which the backslash is doubled again because the value is a string.
func command(executable string) string {
	quoted := strings.NewReplacer(`\`, `\\\\`, `"`, `\\"`, "`", "\\\\`", `$`, `\\$`, `%`, `%%`).Replace(executable)
	return `"` + quoted + `" ` + argument
}

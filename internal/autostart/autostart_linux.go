package autostart

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// entryName within the autostart directory (Desktop Application Autostart
// Specification).
const entryName = "porchlight.desktop"

func entryPath() (string, error) {
	config, err := os.UserConfigDir()
	return filepath.Join(config, "autostart", entryName), err
}

// Enabled says whether the app at executable starts at login.
func Enabled(executable string) (bool, error) {
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

func entryFor(executable string) string {
	return "[Desktop Entry]\nType=Application\nName=Porchlight\nIcon=porchlight\nTerminal=false\nExec=" + command(executable) + "\n"
}

// command is an Exec line: quoted as the Desktop Entry Specification has it, in
// which the backslash is doubled again because the value is a string.
func command(executable string) string {
	quoted := strings.NewReplacer(`\`, `\\\\`, `"`, `\\"`, "`", "\\\\`", `$`, `\\$`, `%`, `%%`).Replace(executable)
	return `"` + quoted + `" ` + argument
}

package autostart

import (
	"encoding/xml"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// label of the launch agent; its file is named after it (launchd.plist(5)).
const label = "app.porchlight.desktop"

func entryPath() (string, error) {
	home, err := os.UserHomeDir()
	return filepath.Join(home, "Library", "LaunchAgents", label+".plist"), err
}

// Enabled says whether the app at executable starts at login.
func Enabled(executable string) (bool, error) {
	path, err := entryPath()
	if err != nil {
		return false, err
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && string(raw) == entryFor(executable), err
}

func entryFor(executable string) string {
	var text strings.Builder
	xml.EscapeText(&text, []byte(executable)) // a Builder does not fail
	return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>` + label + `</string>
	<key>ProgramArguments</key>
	<array>
		<string>` + text.String() + `</string>
		<string>` + argument + `</string>
	</array>
	<key>RunAtLoad</key>
	<true/>
	<key>ProcessType</key>
	<string>Interactive</string>
</dict>
</plist>
`
}

package autostart

import (
	"encoding/xml"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"porchlight/internal/words"
	"strings"
)

// label of the launch agent; its file is named after it (launchd.plist(5)).
const label = "app.porchlight.desktop"

func agentPath() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", words.Errorf("Porchlight cannot start at login: %w", err)
	}
	return filepath.Join(home, "Library", "LaunchAgents", label+".plist"), nil
}

func enabled(executable string) (bool, error) {
	path, err := agentPath()
	if err != nil {
		return false, err
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && string(raw) == agentFile(executable), err
}

func enable(executable string) error {
	path, err := agentPath()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return words.Errorf("Porchlight cannot start at login: %w", err)
	}
	if err := os.WriteFile(path, []byte(agentFile(executable)), 0o644); err != nil {
		return words.Errorf("Porchlight cannot start at login: %w", err)
	}
	return nil
}

func disable() error {
	path, err := agentPath()
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return words.Errorf("Porchlight still starts at login: %w", err)
	}
	return nil
}

func agentFile(executable string) string {
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

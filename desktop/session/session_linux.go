// Package session says what of a desktop there is around the process.
package session

import (
	"os"
	"path/filepath"
	"strings"
)

// HasDisplay says whether a window can be opened.
func HasDisplay() bool { return os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "" }

// HasBus says whether there is a desktop session to talk to. It has to be
// asked before anything connects: without an address the D-Bus library would
// start a bus of its own that nobody else is on.
func HasBus() bool {
	if address := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); address != "" {
		return !strings.HasPrefix(address, "autolaunch:")
	}
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		return false
	}
	info, err := os.Stat(filepath.Join(dir, "bus"))
	return err == nil && info.Mode()&os.ModeSocket != 0
}

// Package session says what of a desktop there is around the process.
package session

import (
	"os"
	"path/filepath"
	"strings"
)

// HasDisplay says whether a window can be opened.
func HasDisplay() bool { return os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "" }

// Token is what the desktop gave this start so that the window which it leads to may have the
// focus (xdg-activation); empty for none. It counts once, and is not for programs that this one
// starts.
func Token() string {
	token := os.Getenv("XDG_ACTIVATION_TOKEN")
	_ = os.Unsetenv("XDG_ACTIVATION_TOKEN")
	return token
}

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

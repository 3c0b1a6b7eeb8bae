package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/godbus/dbus/v5"

	"porchlight/internal/words"
)

// MenuBar says whether a panel shows tray icons; stock GNOME has none. From
// outside the desktop's session nothing can be said.
func MenuBar(ctx context.Context) []Finding {
	address := sessionBus()
	if address == "" {
		return nil
	}
	conn, err := dbus.Connect(address, dbus.WithContext(ctx))
	if err != nil {
		return []Finding{busSilent}
	}
	defer conn.Close()
	var has bool
	call := conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, "org.kde.StatusNotifierWatcher")
	switch err := call.Store(&has); {
	case err != nil:
		return []Finding{busSilent}
	case !has:
		return []Finding{Said("menu bar", note, words.Of("No panel here shows tray icons, so Porchlight's is not seen."), "Open its window from your applications menu. In GNOME, the package gnome-shell-extension-appindicator brings the icons.")}
	}
	return []Finding{Said("menu bar", fine, words.Of("The panel shows tray icons."), "")}
}

var busSilent = Said("menu bar", note, words.Of("Whether a panel shows Porchlight's icon is not known: the desktop's message bus does not answer."), "Sign out of the desktop and in again.")

// sessionBus is the address of the desktop session's message bus, or empty. Left to
// itself the library would start a bus where it finds none.
func sessionBus() string {
	if address := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); address != "" && !strings.HasPrefix(address, "autolaunch:") {
		return address
	}
	dir := os.Getenv("XDG_RUNTIME_DIR")
	path := filepath.Join(dir, "bus")
	if info, err := os.Stat(path); !filepath.IsAbs(dir) || err != nil || info.Mode().Type() != os.ModeSocket {
		return ""
	}
	return "unix:path=" + dbus.EscapeBusAddressValue(path)
}

//go:build (linux || freebsd || openbsd || netbsd) && !android

// Added by Porchlight: Ayatana's indicators know an icon by its name alone.

package systray

import (
	"crypto/sha256"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/godbus/dbus/v5"
)

// iconDir is where icons lie for a panel that reads no pixmaps; "" until there is one.
var iconDir string

// indicators is the name of Ayatana's panel, which has another as the watcher.
const indicators = "org.ayatana.indicator.application"

// readsNames says whether the panel that items register with is Ayatana's, which draws
// the icon that IconName names, a path too, and asks for no IconPixmap.
func readsNames(conn *dbus.Conn) bool {
	process := func(name string) (pid uint32) { // 0 where nobody has the name
		_ = conn.BusObject().Call("org.freedesktop.DBus.GetConnectionUnixProcessID", 0, name).Store(&pid)
		return pid
	}
	panel := process(indicators)
	return panel != 0 && panel == process("org.kde.StatusNotifierWatcher")
}

// nameIcon has the icon named where the panel reads names, and nowhere else: with a name,
// some others would no longer draw the pixmap at the size that they have room for.
func nameIcon(conn *dbus.Conn) {
	names := readsNames(conn)
	instance.lock.Lock()
	defer instance.lock.Unlock()
	if names == (iconDir != "") {
		return
	}
	if names {
		dir, err := os.MkdirTemp(os.Getenv("XDG_RUNTIME_DIR"), "porchlight-icons-")
		if err != nil {
			log.Printf("systray error: failed to keep icons for the panel: %s\n", err)
			return
		}
		iconDir = dir
	} else {
		dropIcons()
	}
	setIcon(instance.iconData)
}

// iconName is the file that holds this icon, or "". The name is made of what is in it: a
// panel reads a name that it had before from its memory.
func iconName(icon []byte) string {
	if iconDir == "" {
		return ""
	}
	name := filepath.Join(iconDir, fmt.Sprintf("%x.png", sha256.Sum256(icon)))
	if err := os.WriteFile(name, icon, 0o600); err != nil {
		log.Printf("systray error: failed to keep an icon for the panel: %s\n", err)
		return ""
	}
	return name
}

func dropIcons() {
	if iconDir != "" {
		_ = os.RemoveAll(iconDir) // bounded: one file for each state and panel that was shown
		iconDir = ""
	}
}

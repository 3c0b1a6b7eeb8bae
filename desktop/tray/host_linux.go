package tray

import (
	"context"
	"time"

	"github.com/godbus/dbus/v5"

	"porchlight/desktop/session"
)

// Hosted says whether a panel shows tray icons. Stock GNOME has none.
func Hosted() bool {
	if !session.HasBus() {
		return false
	}
	conn, err := dbus.ConnectSessionBus()
	if err != nil {
		return false
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var has bool
	err = conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, "org.kde.StatusNotifierWatcher").Store(&has)
	return err == nil && has
}

package runner

import (
	"context"
	"slices"
	"time"

	"github.com/godbus/dbus/v5"

	"porchlight/desktop/session"
)

// keychainLocked says whether the keyring is locked, without raising the
// question for its password. Where that cannot be told it says no, and the next
// reader of the keychain finds out.
func keychainLocked(ctx context.Context) bool {
	const service, root = "org.freedesktop.secrets", "/org/freedesktop/secrets"
	if !session.HasBus() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := dbus.ConnectSessionBus(dbus.WithContext(ctx))
	if err != nil {
		return false
	}
	defer conn.Close()
	property := func(path dbus.ObjectPath, iface, name string, into any) error {
		return conn.Object(service, path).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, iface, name).Store(into)
	}
	var all []dbus.ObjectPath
	if property(root, "org.freedesktop.Secret.Service", "Collections", &all) != nil {
		return false
	}
	// The login keyring where there is one, as the keychain library has it.
	collection := dbus.ObjectPath(root + "/collection/login")
	if !slices.Contains(all, collection) {
		collection = root + "/aliases/default"
	}
	locked := false
	return property(collection, "org.freedesktop.Secret.Collection", "Locked", &locked) == nil && locked
}

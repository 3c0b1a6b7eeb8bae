//go:build (dragonfly && cgo) || (freebsd && cgo) || linux || netbsd || openbsd

package ownersecret

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/godbus/dbus/v5"
)

// Names of the Secret Service interface
// (https://specifications.freedesktop.org/secret-service/).
const (
	secretsName       = "org.freedesktop.secrets"
	secretsPath       = "/org/freedesktop/secrets"
	secretsCollection = "org.freedesktop.Secret.Collection"
	loginCollection   = secretsPath + "/collection/login"
	defaultCollection = secretsPath + "/aliases/default"
)

const busVariable = "DBUS_SESSION_BUS_ADDRESS"

// ready asks what go-keyring does not: whether there is a session bus, whether
// a Secret Service answers on it, and whether its keyring is locked while a
// question for its password is on the screen already.
func ready(ctx context.Context) error {
	address, err := sessionBus()
	if err != nil {
		return err
	}
	conn, err := dbus.Connect(address, dbus.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("%w: the session bus does not answer: %w", ErrUnavailable, err)
	}
	defer conn.Close()
	locked, err := isLocked(ctx, conn)
	if err != nil {
		return err
	}
	if locked && stuck.Load() > 0 {
		return fmt.Errorf("%w and waits for its password", ErrLocked)
	}
	return nil
}

// sessionBus finds the session bus and writes its address where godbus, below
// go-keyring, looks for it: left to itself it would start a bus of its own when
// it finds none, and it does not look into XDG_RUNTIME_DIR.
func sessionBus() (string, error) {
	if address := os.Getenv(busVariable); address != "" && !strings.HasPrefix(address, "autolaunch:") {
		return address, nil
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		path := filepath.Join(dir, "bus")
		if info, err := os.Stat(path); err == nil && info.Mode().Type() == os.ModeSocket {
			address := "unix:path=" + dbus.EscapeBusAddressValue(path)
			if err := os.Setenv(busVariable, address); err != nil {
				return "", err
			}
			return address, nil
		}
	}
	return "", fmt.Errorf("%w: no desktop session was found (no D-Bus session bus)", ErrUnavailable)
}

// isLocked looks at the collection go-keyring will use.
func isLocked(ctx context.Context, conn *dbus.Conn) (bool, error) {
	get := func(path dbus.ObjectPath, iface, property string, into any) error {
		return conn.Object(secretsName, path).
			CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, iface, property).Store(into)
	}
	var collections []dbus.ObjectPath
	if err := get(secretsPath, "org.freedesktop.Secret.Service", "Collections", &collections); err != nil {
		return false, fmt.Errorf("ask for the keyrings: %w", err)
	}
	collection := dbus.ObjectPath(defaultCollection)
	if slices.Contains(collections, loginCollection) {
		collection = loginCollection
	}
	var locked bool
	if err := get(collection, secretsCollection, "Locked", &locked); err != nil {
		return false, fmt.Errorf("ask whether the keyring is locked: %w", err)
	}
	return locked, nil
}

// refused says whether err means that the keyring stayed locked: the person
// dismissed the question for its password. go-keyring has no value for that.
func refused(err error) bool {
	if de, ok := errors.AsType[dbus.Error](err); ok {
		return de.Name == "org.freedesktop.Secret.Error.IsLocked"
	}
	return strings.HasPrefix(err.Error(), "failed to unlock correct collection")
}

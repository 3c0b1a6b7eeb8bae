// Package shortcut hears of keys pressed anywhere on the desktop, by the portal that lets
// the owner choose them (org.freedesktop.portal.GlobalShortcuts). It asks for one.
package shortcut

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"porchlight/desktop/session"
	"porchlight/internal/words"
)

const (
	portal    = "org.freedesktop.portal.Desktop"
	path      = dbus.ObjectPath("/org/freedesktop/portal/desktop")
	shortcuts = "org.freedesktop.portal.GlobalShortcuts"
	request   = "org.freedesktop.portal.Request"

	id        = "find"
	preferred = "CTRL+ALT+p" // of the shortcuts specification; the owner may choose others
	look      = time.Second  // that the portal may take to say that it is there
)

var errRefused = words.Errorf("The desktop did not give Porchlight a shortcut.")

// Offered says whether the desktop has such a portal.
func Offered() bool {
	ctx, cancel := context.WithTimeout(context.Background(), look)
	defer cancel()
	conn, err := connect(ctx)
	if err != nil {
		return false
	}
	defer conn.Close()
	var version dbus.Variant
	err = conn.Object(portal, path).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, shortcuts, "version").Store(&version)
	return err == nil
}

func connect(ctx context.Context) (*dbus.Conn, error) {
	if !session.HasBus() {
		return nil, errRefused
	}
	return dbus.ConnectSessionBus(dbus.WithContext(ctx))
}

// Listen has the desktop ask for keys, description being what they do. It calls granted
// once, with what the desktop calls them or "", and pressed each time. It returns when
// ctx ends, or an error when the desktop says no or ends it.
func Listen(ctx context.Context, description string, granted func(keys string), pressed func()) error {
	conn, err := connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	signals := make(chan *dbus.Signal, 16)
	conn.Signal(signals)
	for _, of := range []string{request, shortcuts, "org.freedesktop.portal.Session"} {
		if err := conn.AddMatchSignalContext(ctx, dbus.WithMatchSender(portal), dbus.WithMatchInterface(of)); err != nil {
			return err
		}
	}
	ask := asker{conn, signals}.ask
	made, err := ask(ctx, "CreateSession", map[string]dbus.Variant{"session_handle_token": dbus.MakeVariant("porchlight" + rand.Text())})
	if err != nil {
		return err
	}
	handle, _ := made["session_handle"].Value().(string)
	type shortcut struct {
		ID    string
		About map[string]dbus.Variant
	}
	wanted := []shortcut{{id, map[string]dbus.Variant{"description": dbus.MakeVariant(description), "preferred_trigger": dbus.MakeVariant(preferred)}}}
	bound, err := ask(ctx, "BindShortcuts", map[string]dbus.Variant{}, dbus.ObjectPath(handle), wanted, "")
	if err != nil {
		return err
	}
	keys := ""
	var given []shortcut
	if bound["shortcuts"].Store(&given) == nil && len(given) > 0 {
		keys, _ = given[0].About["trigger_description"].Value().(string)
	}
	granted(keys)
	return listen(ctx, signals, dbus.ObjectPath(handle), pressed)
}

// listen calls pressed each time until ctx or the session ends.
func listen(ctx context.Context, signals <-chan *dbus.Signal, handle dbus.ObjectPath, pressed func()) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case s, open := <-signals:
			switch {
			case !open, s.Name == "org.freedesktop.portal.Session.Closed" && s.Path == handle:
				return errRefused
			case s.Name == shortcuts+".Activated" && len(s.Body) > 1 && s.Body[0] == handle && s.Body[1] == id:
				pressed()
			}
		}
	}
}

// asker asks the portal.
type asker struct {
	conn    *dbus.Conn
	signals <-chan *dbus.Signal
}

// ask calls a method that answers by a signal, which names the request by its token.
func (a asker) ask(ctx context.Context, method string, options map[string]dbus.Variant, args ...any) (map[string]dbus.Variant, error) {
	token := "porchlight" + rand.Text()
	options["handle_token"] = dbus.MakeVariant(token)
	handle := dbus.ObjectPath("/org/freedesktop/portal/desktop/request/" + strings.NewReplacer(":", "", ".", "_").Replace(a.conn.Names()[0]) + "/" + token)
	if err := a.conn.Object(portal, path).CallWithContext(ctx, shortcuts+"."+method, 0, append(args, options)...).Err; err != nil {
		return nil, words.Errorf("The desktop did not give Porchlight a shortcut. (%w)", err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case s, open := <-a.signals:
			if !open {
				return nil, errRefused
			}
			if s.Name != request+".Response" || s.Path != handle {
				continue
			}
			var code uint32
			var results map[string]dbus.Variant
			if err := dbus.Store(s.Body, &code, &results); err != nil || code != 0 {
				return nil, errRefused
			}
			return results, nil
		}
	}
}

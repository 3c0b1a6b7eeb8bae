package tray

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"fyne.io/systray"
	"github.com/godbus/dbus/v5"

	"porchlight/assets"
	"porchlight/desktop/session"
	"porchlight/internal/broadcast"
)

// literal keeps a menu from reading an underscore as the mark of a shortcut.
func literal(text string) string { return strings.ReplaceAll(text, "_", "__") }

// trayIcon is 22 pixels, the size panels have agreed on, or twice that where the
// desktop draws everything twice as large. The library takes one drawing.
func trayIcon(state string, panel assets.Panel) (template, regular []byte) {
	size := 22
	if scale, _ := strconv.Atoi(os.Getenv("GDK_SCALE")); scale > 1 {
		size = 44
	}
	return nil, assets.TrayPNG(state, size, panel)
}

// Start puts the tray on the session bus and returns what takes it away again.
// systray closes the bus connection it shares with the rest of the process, and
// panics when it had none: end comes last, and only where there is a bus.
func (t *Tray) Start() (end func()) {
	if !session.HasBus() {
		t.log.Warn("there is no session bus, so there is no tray icon")
		return func() {}
	}
	systray.SetTitle("Porchlight") // also how panels remember the icon's place
	systray.SetTooltip("Porchlight")
	t.ping = pingPanel
	start, stop := systray.RunWithExternalLoop(t.build, nil)
	start()
	ending, kept := make(chan struct{}), make(chan struct{})
	go func() { defer close(kept); t.keep(ending) }()
	var once sync.Once
	return func() {
		once.Do(func() {
			defer func() {
				if r := recover(); r != nil {
					t.log.Warn("the tray ended badly", "cause", r)
				}
			}()
			close(ending)
			<-kept
			<-t.made
			stop()
		})
	}
}

// trayWatcher is the name of the panel's part that shows icons.
const trayWatcher = "org.kde.StatusNotifierWatcher"

// pingPanel asks the panel for something that it answers between reading the menu and
// drawing it. What was sent to it before, it has by then.
func pingPanel() {
	ctx, cancel := context.WithTimeout(context.Background(), levelAnew)
	defer cancel()
	if conn, err := dbus.SessionBus(); err == nil {
		_ = conn.Object(trayWatcher, "/StatusNotifierWatcher").CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", dbus.FlagNoAutoStart, trayWatcher, "ProtocolVersion").Err
	}
}

// busAgain is the time between two tries to reach a session bus that went away.
const busAgain = time.Second

// keep puts the tray on the bus again when that was restarted, which systray does
// not, and has the menu made anew for another panel. It returns when ending is
// closed.
func (t *Tray) keep(ending <-chan struct{}) {
	lost := false
	for {
		conn, err := dbus.SessionBus() // the one systray uses, or a new one
		if err == nil {
			if lost {
				t.log.Info("the session bus is back, and the tray with it")
				start, _ := systray.RunWithExternalLoop(func() {}, nil)
				start()
				broadcast.Raise(t.anew)
			}
			lost = true
			if !t.watchPanels(conn, ending) {
				return
			}
			t.log.Warn("the session bus went away, and the tray with it")
		}
		select {
		case <-ending:
			return
		case <-time.After(busAgain):
		}
	}
}

// watchPanels has the menu made anew whenever a panel begins to show icons. It
// returns false when ending is closed, and true when the bus goes away.
func (t *Tray) watchPanels(conn *dbus.Conn, ending <-chan struct{}) bool {
	match := []dbus.MatchOption{dbus.WithMatchSender("org.freedesktop.DBus"), dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, trayWatcher)}
	if err := conn.AddMatchSignal(match...); err != nil {
		t.log.Warn("another panel will not be noticed", "err", err)
	}
	signals := make(chan *dbus.Signal, 16)
	conn.Signal(signals)
	defer func(ch chan *dbus.Signal) { conn.RemoveSignal(ch) }(signals)
	for {
		select {
		case <-ending:
			return false
		case <-conn.Context().Done():
			return true
		case s := <-signals:
			if s == nil { // closed: the bus goes away
				signals = nil
				continue
			}
			if s.Name != "org.freedesktop.DBus.NameOwnerChanged" || len(s.Body) < 3 || s.Body[0] != trayWatcher {
				continue
			}
			if owner, _ := s.Body[2].(string); owner != "" {
				broadcast.Raise(t.anew)
			}
		}
	}
}

package tray

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"fyne.io/systray"

	"porchlight/assets"
	"porchlight/desktop/session"
	"porchlight/desktop/verbs"
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
// systray panics at the end when it had no bus.
func (t *Tray) Start() (end func()) {
	if !session.HasBus() {
		t.log.Warn("there is no session bus, so there is no tray icon")
		return func() {}
	}
	systray.SetTitle("Porchlight") // also how panels remember the icon's place
	systray.SetTooltip("Porchlight")
	systray.SetOnTapped(func() { go t.do(verbs.Action{Verb: verbs.Show}) })
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

// busAgain is the time between two tries to reach a session bus that went away.
const busAgain = time.Second

// keep puts the tray on the bus again when its connection ended, which systray does not:
// the bus was restarted, or has thrown out this one. It returns when ending is closed.
func (t *Tray) keep(ending <-chan struct{}) {
	for {
		select {
		case <-ending:
			return
		case <-systray.Lost():
		}
		t.log.Warn("the session bus went away, and the tray with it")
		for again := false; !again; {
			select {
			case <-ending:
				return
			case <-time.After(busAgain):
			}
			again = systray.Connect() == nil
		}
		t.log.Info("the session bus is back, and the tray with it")
	}
}

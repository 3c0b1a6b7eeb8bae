package desktop

import (
	"strings"
	"sync"

	"fyne.io/systray"

	"porchlight/assets"
)

// literal keeps a menu from reading an underscore as the mark of a shortcut.
func literal(text string) string { return strings.ReplaceAll(text, "_", "__") }

// tipsChange: the library rewrites a property in place while another goroutine
// may be sending it. For the icon, whose size never changes, that is a wrong
// pixel for a moment; for a text it could read beyond its end. So the tooltip is
// set once, before the bus can ask for it.
const tipsChange = false

// trayIcon is 22 pixels, the size panels have agreed on.
func trayIcon(state string, panel assets.Panel) (template, regular []byte) {
	return nil, assets.TrayPNG(state, 22, panel)
}

// start puts the tray on the session bus and returns what takes it away again.
// systray closes the bus connection it shares with the rest of the process, and
// panics when it had none: end comes last, and only where there is a bus.
func (t *tray) start() (end func()) {
	if !hasSessionBus() {
		t.log.Warn("there is no session bus, so there is no tray icon")
		return func() {}
	}
	systray.SetTitle("Porchlight") // also how panels remember the icon's place
	systray.SetTooltip("Porchlight")
	start, stop := systray.RunWithExternalLoop(t.build, nil)
	start()
	var once sync.Once
	return func() {
		once.Do(func() {
			defer func() {
				if r := recover(); r != nil {
					t.log.Warn("the tray ended badly", "cause", r)
				}
			}()
			<-t.made
			stop()
		})
	}
}

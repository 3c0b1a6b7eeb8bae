package tray

import (
	"runtime"
	"strings"
	"sync"

	"fyne.io/systray"

	"porchlight/assets"
)

// literal keeps a menu from reading an ampersand as the mark of a shortcut.
func literal(text string) string { return strings.ReplaceAll(text, "&", "&&") }

func trayIcon(state string, panel assets.Panel) (template, regular []byte) {
	ico := assets.TrayICO(state, panel)
	return ico, ico
}

// Start runs the tray on a thread of its own, away from the window's: both have
// a message loop.
func (t *Tray) Start() (end func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		systray.Run(t.build, nil)
	}()
	var once sync.Once
	return func() {
		once.Do(func() {
			<-t.made
			systray.Quit()
			<-ended
		})
	}
}

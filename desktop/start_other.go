//go:build !darwin

package desktop

import "runtime"

// windowFirst: the tray needs no window, and the window is made when it is first wanted;
// but on Windows at once, hidden, because notifications with buttons are its toolkit's.
const windowFirst = runtime.GOOS == "windows"

// startTray puts the tray up before everything else: it is what an owner waits
// for.
func (a *app) startTray() (end func()) {
	if windowFirst {
		raise(a.wantWindow)
	}
	return a.tray.start()
}

// toolkitStarted runs when the event loop does.
func (a *app) toolkitStarted() {
	if windowFirst {
		a.showWished()
	}
}

func windowShown()  {}
func windowHidden() {}

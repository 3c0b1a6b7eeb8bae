//go:build !darwin

package desktop

// windowFirst: the tray needs no window, and the window is made when it is first
// wanted.
const windowFirst = false

// startTray puts the tray up before everything else: it is what an owner waits
// for.
func (a *app) startTray() (end func()) { return a.tray.start() }

func (a *app) toolkitStarted() {}
func windowShown()             {}
func windowHidden()            {}

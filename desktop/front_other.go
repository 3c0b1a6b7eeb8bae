//go:build !darwin || !cgo

package desktop

import "runtime"

// windowFirst: the tray needs no window, and the window is made when it is first wanted;
// but on Windows at once, hidden, because notifications with buttons are its toolkit's.
const windowFirst = runtime.GOOS == "windows"

func windowShown()  {}
func windowHidden() {}

//go:build !darwin || !cgo

package page

import "runtime"

// First: the tray needs no window, and the window is made when it is first wanted;
// but on Windows at once, hidden, because notifications with buttons are its toolkit's.
const First = runtime.GOOS == "windows"

func windowShown()  {}
func windowHidden() {}

//go:build !linux

package desktop

// trayHost says whether a panel shows tray icons.
func trayHost() bool { return true }

//go:build !linux

package tray

// Hosted says whether a panel shows tray icons.
func Hosted() bool { return true }

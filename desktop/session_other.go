//go:build !linux

package desktop

// hasDisplay says whether a window can be opened: a program of these systems
// that runs at all has a desktop.
func hasDisplay() bool { return true }

// hasSessionBus says whether there is a desktop session to talk to.
func hasSessionBus() bool { return true }

//go:build !darwin

package tray

// OnLoop is called when the window's event loop runs: here it is not the tray's.
func (t *Tray) OnLoop() {}

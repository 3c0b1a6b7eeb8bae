//go:build !linux

// Package session says what of a desktop there is around the process.
package session

// HasDisplay says whether a window can be opened: a program of these systems
// that runs at all has a desktop.
func HasDisplay() bool { return true }

// Token is of Linux alone.
func Token() string { return "" }

// HasBus says whether there is a desktop session to talk to.
func HasBus() bool { return true }

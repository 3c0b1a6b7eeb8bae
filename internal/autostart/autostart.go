// Package autostart has the desktop app started when its owner logs in, by the
// means each system has for one user: an entry of the XDG autostart directory,
// a launch agent on macOS, the Run key on Windows. What the owner changes there
// by hand counts.
package autostart

// Arguments the app is started with: no window unless it is asked for.
const argument = "--hidden"

package desktop

import (
	"context"

	"porchlight/internal/words"
)

// window is the one window of the app. It is made at the first open, on the main
// goroutine, and from then on only hidden and shown.
type window interface {
	// run makes the window and returns when the app quits. It must be called on
	// the main goroutine, at most once in the life of the process.
	run() error
	// show brings the window to the front; false until run has made it.
	show() bool
	// emit sends an event to the page, if there is one.
	emit(name string, data any)
	// copy puts a text on the clipboard by the window's toolkit; false where the
	// window is not on the screen.
	copy(text string) bool
	// place asks the owner where to save a file that is called name unless they
	// say otherwise; "" when they rather not.
	place(name string) (path string, err error)
	// quit makes run return.
	quit()
}

// windowOptions of newWindow.
type windowOptions struct {
	bind        []any // the structs the page can call
	startHidden bool  // make the window without showing it
	// onStart is called once the toolkit runs, with its context.
	onStart func(context.Context)
	onHide  func() // called when the owner has closed the window; must not block
	// onLooks is told whether the desktop is dark, at first and when that changes, where
	// the page cannot see it; must not block.
	onLooks func(dark bool)
}

var (
	errNoDisplay = words.Errorf("There is no display here, so Porchlight cannot open its window. The command line does everything the window does: porchlight --help")
	errNoToolkit = words.Errorf("The display of this session cannot be reached, so Porchlight cannot open its window.")
)

// Package page has the window: the toolkit that runs it, and the process its page runs in,
// ended while the window is closed. What the page shows and may call, it is given.
package page

import (
	"context"

	"porchlight/desktop/language"
	"porchlight/internal/words"
)

// Window is the one window of the app. It is made at the first open, on the main
// goroutine, and from then on only hidden and shown.
type Window interface {
	// Run makes the window and returns when the app quits. It must be called on
	// the main goroutine, at most once in the life of the process.
	Run() error
	// Show brings the window to the front; false until run has made it.
	Show() bool
	// Emit sends an event to the page, if there is one.
	Emit(name string, data any)
	// Copy puts a text on the clipboard by the window's toolkit; false where the
	// window is not on the screen.
	Copy(text string) bool
	// Place asks the owner where to save a file that is called name unless they
	// say otherwise; "" when they rather not.
	Place(name string) (path string, err error)
	// Quit makes run return.
	Quit()
}

// Options of New.
type Options struct {
	Bind        []any // the structs the page can call
	StartHidden bool  // make the window without showing it
	// OnStart is called once the toolkit runs, with its context.
	OnStart func(context.Context)
	OnHide  func() // called when the owner has closed the window; must not block
	// OnLooks is told whether the desktop is dark, at first and when that changes, where
	// the page cannot see it; must not block.
	OnLooks func(dark bool)
}

// forPage is an error of what the page called, as the page shows it.
func forPage(err error) any { return language.Sentence(err) }

var (
	errNoDisplay = words.Errorf("There is no display here, so Porchlight cannot open its window. The command line does everything the window does: porchlight --help")
	errNoToolkit = words.Errorf("The display of this session cannot be reached, so Porchlight cannot open its window.")
)

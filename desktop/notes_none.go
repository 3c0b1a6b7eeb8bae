//go:build !production || (!windows && (!darwin || !cgo))

package desktop

import "context"

// startNotes: on Linux notes need no toolkit, and without one there are none elsewhere.
func (a *app) startNotes(context.Context) {}

// tellToolkitGone is tell: here the toolkit shows no notes.
func (a *app) tellToolkitGone(n note) { a.tell(n) }

//go:build !production || (!windows && (!darwin || !cgo))

package desktop

import "context"

// startNotes: on Linux notes need no toolkit, and without one there are none elsewhere.
func (a *app) startNotes(context.Context) {}

func (a *app) noToolkit() {}

//go:build !production || (!windows && (!darwin || !cgo))

package notes

import "context"

// Begin does nothing here: on Linux notes need no toolkit, and without one there are none
// elsewhere.
func (n *Notifications) Begin(context.Context) {}

// ToolkitGone says whether it has shown a note by other means than the toolkit, which is
// gone: here the toolkit shows none.
func (n *Notifications) ToolkitGone(context.Context, Note) bool { return false }

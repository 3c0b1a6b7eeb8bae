// fyne.io/systray v1.12.2 without examples and tests, and with what Porchlight changed: files
// that differ say so at their head, and diff -r with that version is the patch for upstream.
//
// In words, for upstream: on Linux the menu's methods must be answered in the order in which
// they were called, and an answer must not pass a signal that tells of something later. godbus
// runs every call on a goroutine of its own; libdbusmenu-gtk drops an item for good whose
// properties come before its parent's. A first GetLayout of depth 1 hides that from the first
// reader alone. An item that opens a menu must do so from the beginning, the root included.
module fyne.io/systray

go 1.19

require (
	github.com/godbus/dbus/v5 v5.1.0
	golang.org/x/sys v0.15.0
)

//go:build !linux

package desktop

import (
	"context"
	"log/slog"

	"github.com/gen2brain/beeep"

	"porchlight/assets"
	"porchlight/desktop/verbs"
)

// notifications by the window's toolkit.
type notifications = toolkitNotes

func newNotifications(log *slog.Logger, do func(verbs.Action)) *notifications {
	return newToolkitNotes(log, do, literalNote)
}

func (n *toolkitNotes) close() {}

// lastWords is a note of a program that has no toolkit, or none any more, without buttons. The
// library writes scripts of it where the system has nothing better.
func lastWords(_ context.Context, _ *slog.Logger, what note) error {
	beeep.AppName = "Porchlight"
	return beeep.Notify(harmless(what.title), harmless(what.body), assets.AppIconSmall)
}

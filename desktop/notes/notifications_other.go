//go:build !linux

package notes

import (
	"context"
	"log/slog"

	"github.com/gen2brain/beeep"

	"porchlight/assets"
	"porchlight/desktop/verbs"
)

// Notifications by the window's toolkit.
type Notifications = toolkitNotes

// New shows nothing yet; do is called for every click.
func New(log *slog.Logger, do func(verbs.Action), _ func(token string)) *Notifications {
	return newToolkitNotes(log, do, literalNote)
}

// Close does nothing: the toolkit ends by itself.
func (n *toolkitNotes) Close() {}

// LastWords is a note of a program that has no toolkit, or none any more, without buttons. The
// library writes scripts of it where the system has nothing better.
func LastWords(_ context.Context, _ *slog.Logger, what Note) error {
	beeep.AppName = "Porchlight"
	return beeep.Notify(harmless(what.Title), harmless(what.Body), assets.AppIconSmall)
}

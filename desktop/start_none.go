//go:build darwin && !cgo

package desktop

import (
	"context"
	"log/slog"

	"porchlight/assets"
	"porchlight/desktop/menu"
	"porchlight/desktop/verbs"
)

// Without cgo macOS has neither tray nor window: enough to check the rest of
// the package from another system.

const windowFirst = false

type tray struct{ other chan struct{} }

func newTray(*slog.Logger, func() assets.Panel, func(verbs.Action)) *tray {
	return &tray{other: make(chan struct{}, 1)}
}

func (*tray) set(menu.Menu)                               {}
func (*tray) run(ctx context.Context, _ func() menu.Menu) { <-ctx.Done() }

func (*tray) watchOpening(ctx context.Context, _ func()) { <-ctx.Done() }

func (a *app) startTray() (end func()) { return func() {} }
func (a *app) toolkitStarted()         {}

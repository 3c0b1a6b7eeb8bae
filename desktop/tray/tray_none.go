//go:build darwin && !cgo

package tray

import (
	"context"
	"log/slog"

	"porchlight/desktop/menu"
	"porchlight/desktop/verbs"
)

// Tray shows nothing: without cgo macOS has neither tray nor window: enough to check the rest of
// the program from another system.
type Tray struct{}

func New(*slog.Logger, func() string, func(verbs.Action)) *Tray { return &Tray{} }

func (*Tray) Start() (end func()) { return func() {} }
func (*Tray) OnLoop()             {}
func (*Tray) Redraw()             {}
func (*Tray) Set(menu.Menu)       {}

func (*Tray) Run(ctx context.Context, _ func() menu.Menu) { <-ctx.Done() }
func (*Tray) WatchOpening(ctx context.Context, _ func())  { <-ctx.Done() }

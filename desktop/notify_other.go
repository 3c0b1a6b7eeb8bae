//go:build !linux

package desktop

import (
	"context"
	"log/slog"
	"sync"

	"github.com/gen2brain/beeep"

	"porchlight/assets"
)

// notifications without buttons or clicks, which is what beeep has: the tray
// and the window are where requests are answered.
type notifications struct {
	log *slog.Logger
	mu  sync.Mutex // one at a time
}

func newNotifications(log *slog.Logger, _ func(action)) *notifications {
	beeep.AppName = "Porchlight"
	return &notifications{log: log}
}

// show shows a note.
func (n *notifications) show(_ context.Context, what note) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return beeep.Notify(what.title, what.body, assets.AppIconSmall)
}

// drop cannot take a note away here; it leaves the screen by itself.
func (n *notifications) drop(context.Context, string) {}

func (n *notifications) close() {}

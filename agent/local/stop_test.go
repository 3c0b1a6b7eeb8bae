package local

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"porchlight/test/programs"
)

// stopper is a log that ends a context when it reads a message.
type stopper struct {
	slog.Handler
	at   string
	stop context.CancelFunc
}

func (s stopper) Enabled(context.Context, slog.Level) bool { return true }
func (s stopper) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s stopper) Handle(_ context.Context, r slog.Record) error {
	if r.Message == s.at {
		s.stop()
	}
	return nil
}

// Weakness: whoever stops Porchlight while it starts is handed neither a running
// one nor an error, and the program ends in a panic.
// Checked: it ends, without an error, and the data directory can be used again.
func TestStoppedWhileStarting(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg := configOf(t.TempDir())
	cfg.Agent.Log = slog.New(stopper{slog.DiscardHandler, "agent is up", cancel})
	l, err := New(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Run(ctx), cfg.Agent.Server.Close()); err != nil {
		t.Fatalf("it ended with %v", err)
	}
	again := configOf(l.dataDir)
	again.HTTPS = programs.FreeAddress(t) // another program may have the one that was drawn
	start(t, again).end()
}

package local

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"porchlight/agent/agentapi"
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
// Checked: an error, of the context that ended.
func TestStoppedWhileStarting(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := Start(ctx, Config{
		DataDir: t.TempDir(),
		API:     "127.0.0.1:0",
		HTTPS:   "127.0.0.1:0",
		Mode:    agentapi.ModeHeadless,
		Log:     slog.New(stopper{slog.DiscardHandler, "agent is up", cancel}),
	})
	if r != nil || !errors.Is(err, context.Canceled) {
		t.Fatalf("Start gave %v and %v", r, err)
	}
}

package local

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/agent/agentapi"
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
	l := programs.Got(New(ctx, cfg))(t)
	if err := errors.Join(l.Run(ctx), cfg.Agent.Server.Close()); err != nil {
		t.Fatalf("it ended with %v", err)
	}
	again := configOf(l.dataDir)
	again.HTTPS = programs.FreeAddress(t) // another program may have the one that was drawn
	start(t, again).end()
}

// logged is a log that notes whether it was told a message.
type logged struct {
	slog.Handler
	what string
	was  *atomic.Bool
}

func (l logged) Enabled(context.Context, slog.Level) bool { return true }
func (l logged) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l logged) Handle(_ context.Context, r slog.Record) error {
	if r.Message == l.what {
		l.was.Store(true)
	}
	return nil
}

// Weakness: quitting in the menu waited until the time of what visitors have open was
// over, although its question had just said that they are cut off.
// Checked: a visit that would never end, ends before that time is over; a stop without
// the menu lets requests be answered.
func TestQuittingCutsVisitsOff(t *testing.T) {
	t.Parallel()
	for _, mode := range []agentapi.Mode{agentapi.ModeDesktop, agentapi.ModeHeadless} {
		var waited atomic.Bool
		h := startHouseWith(t, func(c *Config) {
			c.Agent.Mode, c.grace = mode, time.Minute // the agent's own time is what is looked at
			c.Agent.Log = slog.New(logged{slog.DiscardHandler, "requests of visitors were cut off", &waited})
		})
		answer := make(chan struct{})
		h.serves(t, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			select {
			case <-answer:
			case <-r.Context().Done():
			}
		})))
		address := h.publish(t)
		resp := send(t, h.ownersClient(t, true), http.MethodGet, address+"/events", nil)
		ended := make(chan error, 1)
		go func() { ended <- h.end() }()
		if mode == agentapi.ModeHeadless {
			close(answer)
		}
		_, err := io.ReadAll(resp.Body)
		if cut := err != nil; cut != (mode == agentapi.ModeDesktop) || waited.Load() {
			t.Errorf("%s: the visit ended with %v, after the time to finish: %v", mode, err, waited.Load())
		}
		if err := <-ended; err != nil {
			t.Errorf("%s: it ended with %v", mode, err)
		}
	}
}

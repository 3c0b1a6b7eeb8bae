package local

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/agent/doctor"
)

// A fault of our own reading, met by a visitor, is counted where the owner sees it, and
// doctor says what to do: once, and then twice.
func TestFaultsAreShown(t *testing.T) {
	t.Parallel()
	h := startHouseWith(t, func(c *Config) {
		c.Agent.Log = slog.New(planted{slog.DiscardHandler, "an app failed"})
	})
	h.serves(t, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			panic(http.ErrAbortHandler)
		}
	})))
	address := h.publish(t)
	for i, want := range []string{"has failed once since", "has failed 2 times since"} {
		// The library asks once more on another connection, unless it may have done something.
		client := h.ownersClient(t, i > 0)
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader("once"))
		req.Header.Set("Origin", address)
		if res, err := client.Do(req); err == nil {
			res.Body.Close()
			t.Fatalf("the handler did not panic: %s", res.Status)
		}
		state, err := h.owner.State(t.Context())
		if err != nil || state.HTTPBroken != i+1 {
			t.Errorf("%d faults are shown, %v", state.HTTPBroken, err)
		}
		found := doctor.Examine(t.Context(), doctor.Patient{State: agentapi.OwnerState{HTTPBroken: state.HTTPBroken}})
		if len(found) != 1 || !strings.Contains(found[0].Text, want) || !strings.Contains(found[0].Next, "Its log says where.") {
			t.Errorf("doctor says %+v", found)
		}
	}
}

// planted is a log that panics at one line.
type planted struct {
	slog.Handler
	at string
}

func (planted) Enabled(context.Context, slog.Level) bool { return true }

func (p planted) WithAttrs([]slog.Attr) slog.Handler { return p }

func (p planted) WithGroup(string) slog.Handler { return p }

func (p planted) Handle(_ context.Context, r slog.Record) error {
	if r.Message == p.at {
		panic("a fault that a test planted")
	}
	return nil
}

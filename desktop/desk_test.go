package desktop

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/desktop/page"
	"porchlight/desktop/runner"
	"porchlight/desktop/ui"
)

// keeper is an agent that keeps next to nothing.
type keeper struct {
	runner.Client
	err error
}

func (k keeper) State(context.Context) (agentapi.OwnerState, error) {
	return agentapi.OwnerState{Account: agentapi.Account{Email: "maya@example.com"}}, k.err
}
func (k keeper) People(context.Context) (agentapi.People, error) { return agentapi.People{}, nil }
func (k keeper) Activity(context.Context, int) ([]agentapi.Activity, error) {
	return nil, nil
}
func (k keeper) Settings(context.Context) (agentapi.Settings, error)       { return agentapi.Settings{}, nil }
func (k keeper) Passwords(context.Context) ([]agentapi.AppPassword, error) { return nil, nil }

// asksWhere is a window whose owner answers where to save something.
type asksWhere struct {
	page.Window
	path  string
	err   error
	names []string // what it would be called, each time
}

func (w *asksWhere) Place(name string) (string, error) {
	w.names = append(w.names, name)
	return w.path, w.err
}

func TestExportGoesWhereTheOwnerSays(t *testing.T) {
	t.Parallel()
	export := func(agent keeper, w *asksWhere) (string, error) {
		return desk{app: &app{ctx: t.Context(), client: agent, window: w}}.Export()
	}
	file := filepath.Join(t.TempDir(), "mine.json")
	where := &asksWhere{path: file}
	if saved, err := export(keeper{}, where); saved != file || err != nil {
		t.Errorf("saved as %q, %v", saved, err)
	}
	if len(where.names) != 1 || !strings.HasPrefix(where.names[0], "porchlight-") || filepath.Ext(where.names[0]) != ".json" {
		t.Errorf("it would be called %q", where.names)
	}
	if raw, err := os.ReadFile(file); err != nil || !strings.Contains(string(raw), "maya@example.com") {
		t.Errorf("saved %q, %v", raw, err)
	}
	if saved, err := export(keeper{}, &asksWhere{}); saved != "" || err != nil {
		t.Errorf("an owner who rather not: %q, %v", saved, err)
	}
	closed := errors.New("Porchlight's window is closed.")
	if _, err := export(keeper{}, &asksWhere{err: closed}); !errors.Is(err, closed) {
		t.Errorf("nobody to ask: %v", err)
	}
	away := &asksWhere{path: file}
	if _, err := export(keeper{err: ui.ErrNotReady}, away); !errors.Is(err, ui.ErrNotReady) || len(away.names) != 0 {
		t.Errorf("nothing to export: asked for %q, %v", away.names, err)
	}
}

func TestNoAgentIsASentence(t *testing.T) {
	t.Parallel()
	a := &app{ctx: t.Context(), reason: ui.ErrNotReady}
	if _, err := ui.NewAgent(a.call).Ask("ownerState", nil); !errors.Is(err, ui.ErrNotReady) {
		t.Errorf("asked: %v", err)
	}
	if err := (desk{app: a}).Open("notes"); !errors.Is(err, ui.ErrNotReady) {
		t.Errorf("opened: %v", err)
	}
}

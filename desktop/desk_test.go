package desktop

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/desktop/page"
	"porchlight/desktop/ui"
)

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
	agent := startAgent(t, map[string]any{"GET /owner/state": agentapi.OwnerState{Account: agentapi.Account{Email: "maya@example.com"}}})
	export := func(w *asksWhere) (string, error) {
		return desk{app: &app{ctx: t.Context(), client: agent.Client, window: w}}.Export()
	}
	file := filepath.Join(t.TempDir(), "mine.json")
	where := &asksWhere{path: file}
	if saved, err := export(where); saved != file || err != nil {
		t.Errorf("saved as %q, %v", saved, err)
	}
	if len(where.names) != 1 || !strings.HasPrefix(where.names[0], "porchlight-") || filepath.Ext(where.names[0]) != ".json" {
		t.Errorf("it would be called %q", where.names)
	}
	if raw, err := os.ReadFile(file); err != nil || !strings.Contains(string(raw), "maya@example.com") {
		t.Errorf("saved %q, %v", raw, err)
	}
	if saved, err := export(&asksWhere{}); saved != "" || err != nil {
		t.Errorf("an owner who rather not: %q, %v", saved, err)
	}
	closed := errors.New("Porchlight's window is closed.")
	if _, err := export(&asksWhere{err: closed}); !errors.Is(err, closed) {
		t.Errorf("nobody to ask: %v", err)
	}
	away := &asksWhere{path: file}
	agent.answer("GET /owner/state", agentapi.Errorf(agentapi.CodeUnavailable, "Not now."))
	if _, err := export(away); agentapi.CodeOf(err) != agentapi.CodeUnavailable || len(away.names) != 0 {
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

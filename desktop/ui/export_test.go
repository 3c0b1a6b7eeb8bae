package ui

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
)

// keeper is an agent that keeps next to nothing.
type keeper struct {
	Agent
	err error
}

func (k keeper) State(context.Context) (agentapi.OwnerState, error) {
	return agentapi.OwnerState{Account: agentapi.Account{Email: "maya@example.com"}}, k.err
}
func (k keeper) People(context.Context) (agentapi.People, error) { return agentapi.People{}, nil }
func (k keeper) Activity(context.Context, int) ([]agentapi.Activity, error) {
	return nil, nil
}
func (k keeper) Settings(context.Context) (agentapi.Settings, error) { return agentapi.Settings{}, nil }

func TestExportGoesWhereTheOwnerSays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var asked int
	to := func(path string, err error) func(string) (string, error) {
		return func(name string) (string, error) {
			if asked++; !strings.HasPrefix(name, "porchlight-") || filepath.Ext(name) != ".json" {
				t.Errorf("it would be called %q", name)
			}
			return path, err
		}
	}
	from := func() (Agent, error) { return keeper{}, nil }
	file := filepath.Join(dir, "mine.json")
	if saved, err := NewSettings(from, nil, to(file, nil), nil).Export(); saved != file || err != nil {
		t.Errorf("saved as %q, %v", saved, err)
	}
	if raw, err := os.ReadFile(file); err != nil || !strings.Contains(string(raw), "maya@example.com") {
		t.Errorf("saved %q, %v", raw, err)
	}
	if saved, err := NewSettings(from, nil, to("", nil), nil).Export(); saved != "" || err != nil {
		t.Errorf("an owner who rather not: %q, %v", saved, err)
	}
	closed := errors.New("Porchlight's window is closed.")
	if _, err := NewSettings(from, nil, to("", closed), nil).Export(); !errors.Is(err, closed) {
		t.Errorf("nobody to ask: %v", err)
	}
	asked = 0
	away := func() (Agent, error) { return keeper{err: ErrNotReady}, nil }
	if _, err := NewSettings(away, nil, to(file, nil), nil).Export(); !errors.Is(err, ErrNotReady) || asked != 0 {
		t.Errorf("nothing to export: asked %d times, %v", asked, err)
	}
}

package host

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// Weakness: a data directory is removed with what somebody else has in it, as secrets of other
// data directories are where the configuration is the same directory.
// Checked: what Porchlight made goes, the database last, and all else stays.
func TestRemoveLeavesTheRest(t *testing.T) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	dir := filepath.Join(config, "porchlight")
	for _, name := range []string{"agent.db", "agent.db.format-5", "ca/root.pem", "control/control.db", "reach/x.secret"} {
		programs.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		programs.Must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	ours, others, err := Contents(dir)
	if err != nil || len(others) > 0 || !slices.Equal(ours, []string{"agent.db", "agent.db.format-5", "ca", "control"}) {
		t.Errorf("%q, %q, %v", ours, others, err)
	}
	elsewhere := filepath.Join(t.TempDir(), "data")
	programs.Must(t, os.MkdirAll(filepath.Join(elsewhere, "reach"), 0o700))
	if _, others, err := Contents(elsewhere); err != nil || !slices.Equal(others, []string{"reach"}) {
		t.Errorf("elsewhere: %q, %v", others, err)
	}
	programs.Must(t, Remove(dir))
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "reach" {
		t.Errorf("left are %v, %v", left, err)
	}
}

// TestLeave: the server hears that a computer goes, whose agent runs no more; one that is away is
// named.
func TestLeave(t *testing.T) {
	t.Parallel()
	control := newControl(t)
	h := start(t, config(t.TempDir()))
	owner := agentapi.NewOwner(h.OwnerSocket(), secret)
	control.confirm()
	programs.Got(owner.Connect(t.Context(), agentapi.ConnectRequest{URL: control.url, CA: control.pem}))(t)
	programs.Eventually(t, "it is connected", func() bool {
		a, err := owner.Account(t.Context())
		return err == nil && a.Host == "cellar.porch.test"
	})
	h.stop()
	file := filepath.Join(h.cfg.DataDir, connectionName)
	connected := programs.Got(os.ReadFile(file))(t)
	for range 2 { // the second time it is not known there any more
		if untold, err := Leave(t.Context(), h.cfg.DataDir); err != nil || len(untold) > 0 {
			t.Errorf("untold: %v, %v", untold, err)
		}
	}
	control.mu.Lock()
	if control.left != 1 {
		t.Errorf("it left %d times", control.left)
	}
	control.mu.Unlock()
	programs.Must(t, os.WriteFile(file, bytes.ReplaceAll(connected, []byte(control.url), []byte("https://127.0.0.1:1")), 0o600))
	if untold, err := Leave(t.Context(), h.cfg.DataDir); err != nil || untold["https://127.0.0.1:1"] == nil {
		t.Errorf("of one that is away: %v, %v", untold, err)
	}
	lost := programs.Got(openConnection(file))(t).get().Current
	programs.Must(t, credentialsOf(h.cfg.DataDir, *lost).Delete(t.Context()))
	if untold, err := Leave(t.Context(), h.cfg.DataDir); err != nil || untold["https://127.0.0.1:1"] == nil {
		t.Errorf("of one whose credential is lost: %v, %v", untold, err)
	}
	if untold, err := Leave(t.Context(), t.TempDir()); err != nil || len(untold) > 0 {
		t.Errorf("without any: %v, %v", untold, err)
	}
}

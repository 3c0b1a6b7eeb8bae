package host

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

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

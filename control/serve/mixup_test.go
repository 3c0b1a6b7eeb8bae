package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/control"
)

// TestNoServerInAnAgentsDirectory: one directory named for the other is refused,
// and nothing in it changes.
func TestNoServerInAnAgentsDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, agentFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), Config{DataDir: dir, Naming: control.Naming{Domain: "porch.test"}, Listen: []string{"127.0.0.1:0"}})
	if err == nil || !strings.Contains(err.Error(), "of a Porchlight agent") {
		t.Fatalf("Open: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

package host

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// TestNoAgentInAServersDirectory: one directory named for the other is refused,
// and nothing in it changes.
func TestNoAgentInAServersDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	programs.Must(t, os.WriteFile(filepath.Join(dir, serverFile), nil, 0o600))
	_, err := New(t.Context(), Config{DataDir: dir, API: "127.0.0.1:0", Local: true, HTTPS: "127.0.0.1:0", Mode: "headless", OwnerSecretHash: make([]byte, 32), Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "of a control plane") {
		t.Fatalf("New: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

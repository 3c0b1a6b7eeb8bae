package durable

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"porchlight/test/programs"
)

// TestReplace: the file has the new content, is closed to others whatever it was
// before, and nothing else is left in its directory.
func TestReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "kept.json")
	programs.Must(t, os.WriteFile(path, []byte("the old one, which is longer"), 0o644))
	for _, content := range []string{"new", "", "newer"} {
		programs.Must(t, Replace(path, []byte(content)))
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("%q, %v, want %q", got, err, content)
		}
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	only(t, dir, "kept.json")
}

// TestReplaceFails: what cannot be replaced stays, and nothing is left of the
// attempt.
func TestReplaceFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	programs.Must(t, os.MkdirAll(filepath.Join(taken, "full"), 0o700))
	if err := Replace(taken, []byte("new")); err == nil {
		t.Error("a directory was replaced")
	}
	only(t, dir, "taken")
	if err := Replace(filepath.Join(dir, "none", "kept.json"), []byte("new")); err == nil {
		t.Error("a file was written into a directory that is not there")
	}
}

func only(t *testing.T, dir, name string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != name {
		t.Errorf("left are %v, %v", left, err)
	}
}

package boltfile

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	bolt "go.etcd.io/bbolt"

	"porchlight/test/programs"
)

// Weakness: a store of which a full disk left an empty file opened as a new one,
// and everything in it was gone without a word. Checked: it is refused and stays
// as it is.
func TestEmptyFileIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	programs.Must(t, os.WriteFile(path, nil, 0o600))
	if err := Ensure(path); !errors.Is(err, ErrEmpty) {
		t.Errorf("got %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Errorf("the file was changed: %v, %v", info, err)
	}
}

// A new database is whole as soon as it has its name, and nothing else is left
// beside it, also when several processes begin at once.
func TestNewDatabaseIsWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "store.db")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := Ensure(path); err != nil {
				t.Error(err)
			}
			if info, err := os.Stat(path); err != nil || info.Size() == 0 || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("the new database is %v, %v", info, err)
			}
		})
	}
	all.Wait()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("there are %v, %v", left, err)
	}
	db := programs.Got(bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true}))(t)
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// What is there is left alone.
func TestEnsureLeavesFilesAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	programs.Must(t, os.WriteFile(path, []byte("something"), 0o600))
	if err := Ensure(path); err != nil {
		t.Error(err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "something" {
		t.Errorf("it holds %q, %v", content, err)
	}
}

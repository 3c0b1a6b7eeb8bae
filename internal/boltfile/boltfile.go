// Package boltfile is what the stores of agent and control plane share about
// their files: bbolt takes an empty one for a new database. An empty one may be
// what a crash or a full disk left of a store, so here it is an error, and a new
// database appears whole or not at all.
package boltfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"porchlight/internal/durable"

	bolt "go.etcd.io/bbolt"
)

// ErrEmpty is returned by Ensure for a file without a byte in it.
var ErrEmpty = errors.New("it is empty, so what was in it is lost, as can happen when a disk is full. Restore a copy of it, or remove it to start afresh")

// Ensure makes an empty database (0600) at path where no file is. Otherwise it
// refuses with ErrEmpty, or leaves it to bbolt to say what is there. The directory
// has to be there.
func Ensure(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		return ErrEmpty
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return create(path)
}

// create makes the database under another name first. Link refuses a name that is
// taken, so of two processes that begin at once both open the same file. Where a
// file system has no links bbolt makes the file in place: killed in that moment,
// it leaves an empty one, which the next start refuses.
func create(path string) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := f.Close(); err != nil {
		return err
	}
	db, err := bolt.Open(f.Name(), 0o600, &bolt.Options{Timeout: time.Second})
	if err != nil {
		return fmt.Errorf("making it failed: %w", err)
	}
	if err := db.Close(); err != nil {
		return fmt.Errorf("making it failed: %w", err)
	}
	if os.Link(f.Name(), path) != nil {
		return nil
	}
	return durable.SyncDir(dir)
}

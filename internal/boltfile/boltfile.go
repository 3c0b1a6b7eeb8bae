// Package boltfile is what the stores of agent and control plane share about
// their files. bbolt takes an empty one for a new database; it may be what a crash
// or a full disk left of a store, so here it is an error, and a new database
// appears whole or not at all. bbolt faults on a damaged one; here that is an error
// too.
package boltfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"porchlight/internal/durable"

	bolt "go.etcd.io/bbolt"
)

// ErrEmpty is returned by Ensure for a file without a byte in it.
var ErrEmpty = errors.New("it is empty, so what was in it is lost, as can happen when a disk is full. Restore a copy of it, or remove it to start afresh")

// growBy is the step in which a file grows, in bytes: bbolt's own, 16 MiB, would make a
// store of a few people look large.
const growBy = 1 << 20

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

// Open opens the database at path, reads all of it, has ready look at it, and returns
// its file besides. bbolt trusts what a file says of itself, so damage is a panic, a
// fault on the first read of it, or other rows: until ready has returned, all are
// made errors. To read a gigabyte takes seconds, and no memory that grows with it.
func Open(path string, opts bolt.Options, counted Counted, ready func(*DB) error) (db *DB, file *os.File, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			if file != nil {
				_ = LetGo(file)
			}
			db, file, err = nil, nil, fmt.Errorf("%v", p)
		}
	}()
	// Free pages in order: what a commit writes then lies together, and their list,
	// which each commit writes, need not be sorted for it.
	opts.FreelistType = bolt.FreelistArrayType
	opts.PreLoadFreelist = true
	opts.OpenFile = func(name string, flag int, mode os.FileMode) (*os.File, error) {
		f, err := os.OpenFile(name, flag, mode)
		file = f
		return f, err
	}
	bdb, err := bolt.Open(path, 0o600, &opts)
	if err != nil {
		return nil, nil, err
	}
	bdb.AllocSize = growBy
	db = &DB{db: bdb, counted: counted}
	err = bdb.View(func(tx *bolt.Tx) (err error) {
		if err = whole(tx, file); err != nil {
			return err
		}
		if err = checkPages(tx, bdb, file); err != nil { // first: bbolt would go round in circles
			return err
		}
		db.opened = tx.ID()
		db.sum, err = db.sumOf(tx)
		return err
	})
	if err == nil {
		err = ready(db)
	}
	if err != nil {
		bdb.Close()
		return nil, nil, err
	}
	return db, file, nil
}

// whole compares the file's length with what its header promises.
func whole(tx *bolt.Tx, file *os.File) error {
	info, err := file.Stat()
	if err == nil && tx.Size() > info.Size() {
		err = fmt.Errorf("it is %d bytes long and should be %d", info.Size(), tx.Size())
	}
	return err
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

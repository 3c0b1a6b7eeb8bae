// Package store keeps what the agent must not lose in one bbolt file,
// DATA/agent.db: published apps, sessions, the last snapshot of the control
// plane. One file of this package for each bucket; each exports typed methods on
// *Store and nothing of bbolt leaves the package.
//
// Every write is durable when its method returns.
package store

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"porchlight/internal/boltfile"
	"porchlight/internal/durable"
	"porchlight/internal/private"
	"porchlight/internal/words"
)

// FileName of the database inside the data directory.
const FileName = "agent.db"

// lockWait is how long Open waits for another process to let go of the database.
const lockWait = time.Second

// ErrInUse is wrapped by Open when another process holds the database.
var ErrInUse = words.Errorf("another Porchlight is using this data directory")

// Store is safe for concurrent use.
type Store struct {
	db *boltfile.DB
	// observe is told when a write transaction begins to commit (true) and
	// when it has ended (false); nil outside the crash tests.
	observe func(committing bool)

	activity activityCounts
}

// Option of Open.
type Option func(*Store)

// ObserveCommits has fn told when a write transaction begins and ends its
// commit. The crash tests use it to know what a kill interrupted.
func ObserveCommits(fn func(committing bool)) Option {
	return func(s *Store) { s.observe = fn }
}

// Open opens or creates dir/agent.db (0600, dir 0700). It waits at most one
// second for another process to let go of it, and brings what an older version
// wrote up to date; what a newer one wrote is refused and left as it is. The errors
// are sentences for the owner.
func Open(dir string, opts ...Option) (*Store, error) {
	if err := private.Dir(dir); err != nil {
		return nil, words.Errorf("cannot create the data directory %s: %w", dir, durable.Plain(err))
	}
	path := filepath.Join(dir, FileName)
	if err := boltfile.Ensure(path); err != nil {
		return nil, words.Errorf("cannot open %s: %w", path, durable.Plain(err))
	}
	db, _, err := boltfile.Open(path, bolt.Options{Timeout: lockWait}, summed, func(*boltfile.DB) error { return nil })
	if err != nil {
		return nil, cannotOpen(dir, err)
	}
	s := &Store{db: db, activity: activityCounts{most: MaxActivity}}
	for _, o := range opts {
		o(s)
	}
	if err := s.migrate(path); err != nil {
		db.Close()
		return nil, words.Errorf("cannot open %s: %w", path, err)
	}
	boltfile.DropKept(path, time.Now())
	return s, nil
}

// summed has the file notice rows that damage took away. Without a line of what was,
// or with one more, nobody is kept out.
func summed(bucket, _ []byte) (part []byte, counted bool) {
	for _, past := range [][]byte{activityBucket, decisionsBucket, noticesBucket, undoBucket, visitedBucket, sessionsBucket} {
		if bytes.Equal(bucket, past) {
			return nil, false
		}
	}
	return nil, true
}

// Check returns the error of Open for a database that a newer version wrote. It
// changes nothing, so it can be asked before other files beside it are opened.
func Check(dir string) error {
	_, refused, _ := look(dir, time.Nanosecond)
	return refused // nil also where there is none, or where Open says what it is
}

// Format says in which format the database in dir is, and up to which this program knows
// them; the first is 0 where there is no database. The error is that of Open. It waits for
// another process as Open does, and changes nothing.
func Format(dir string) (is, knows int, err error) {
	is, refused, err := look(dir, lockWait)
	return is, len(migrations), cmp.Or(refused, err)
}

// copyTries is how often a database that another process writes is copied, until a copy is whole.
const copyTries = 5

// FormatInUse is Format of a database that another process has open: it reads a copy.
func FormatInUse(dir string) (is, knows int, err error) {
	for range copyTries {
		var refused error
		if is, refused, err = lookAtCopy(dir); err == nil {
			return is, len(migrations), refused
		}
	}
	return 0, len(migrations), err
}

// lookAtCopy is look without a lock: what is written meanwhile is an error, as damage is.
func lookAtCopy(dir string) (is int, refused, err error) {
	path := filepath.Join(dir, FileName)
	from, err := os.Open(path)
	if err != nil {
		return 0, nil, cannotOpen(dir, err)
	}
	defer from.Close()
	if err := roomFor(from, dir, copyLeaves); err != nil {
		return 0, nil, err
	}
	to, err := os.CreateTemp(dir, ".porchlight-*") // 0600, where the database is: it is as secret
	if err != nil {
		return 0, nil, cannotOpen(dir, err)
	}
	defer os.Remove(to.Name())
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Close()); err != nil {
		return 0, nil, cannotOpen(dir, err)
	}
	return lookAt(dir, to.Name(), time.Nanosecond)
}

// copyLeaves is how much of the disk a copy leaves to whoever writes the database, in bytes.
const copyLeaves = 16 << 20

// roomFor is an error where a copy of a file in dir leaves too few bytes of the disk.
func roomFor(file *os.File, dir string, leaves uint64) error {
	info, err := file.Stat()
	if err != nil {
		return cannotOpen(dir, err)
	}
	need := uint64(info.Size()) + leaves
	if free, err := durable.FreeSpace(dir); err == nil && free < need {
		return words.Errorf("%s is in use, so a copy would be looked at, and the disk has no room for one: that takes %s MB, and %s MB are free; make room, or stop Porchlight first", file.Name(), strconv.FormatUint(need>>20+1, 10), strconv.FormatUint(free>>20, 10))
	}
	return nil
}

// look reads the format. refused is of rows that this program must not touch, err of a file
// that cannot be read.
func look(dir string, wait time.Duration) (is int, refused, err error) {
	path := filepath.Join(dir, FileName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil
	}
	return lookAt(dir, path, wait)
}

// lookAt is look at the database in dir or at a copy of it.
func lookAt(dir, file string, wait time.Duration) (is int, refused, err error) {
	path := filepath.Join(dir, FileName)
	db, _, err := boltfile.Open(file, bolt.Options{ReadOnly: true, Timeout: wait}, summed, func(db *boltfile.DB) error {
		refused = db.View(func(tx *boltfile.Tx) (err error) { is, err = version(tx, path); return err })
		return nil
	})
	if err != nil {
		return 0, nil, cannotOpen(dir, err)
	}
	if refused != nil {
		refused = words.Errorf("cannot open %s: %w", path, refused)
	}
	return is, refused, db.Close()
}

// cannotOpen makes a sentence of why the file could not be opened.
func cannotOpen(dir string, err error) error {
	if errors.Is(err, berrors.ErrTimeout) {
		return words.Errorf("%w: %s; stop that one first, or choose another directory", ErrInUse, dir)
	}
	return words.Errorf("cannot open %s, it may be damaged or not a Porchlight database (restore a copy, or move it away to start afresh): %w", filepath.Join(dir, FileName), durable.Plain(err))
}

// Close waits for transactions under way.
func (s *Store) Close() error { return s.db.Close() }

// update runs fn in one durable write transaction. Where fn fails nothing of it is kept, so
// it may take its steps all the same and join their errors.
func (s *Store) update(fn func(*boltfile.Tx) error) error {
	if s.observe == nil {
		return s.db.Update(fn)
	}
	tx, err := s.db.Begin(true)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fn(tx); err != nil {
		return err
	}
	s.observe(true)
	defer s.observe(false)
	return tx.Commit()
}

func (s *Store) view(fn func(*boltfile.Tx) error) error { return s.db.View(fn) }

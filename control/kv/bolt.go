package kv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"porchlight/internal/boltfile"
	"porchlight/internal/durable"
	"porchlight/internal/private"
	"porchlight/internal/words"
)

// lockTimeout is how long openBolt waits for another process to let go.
const lockTimeout = time.Second

// reserve is how much address space, in bytes, is set aside for the file. It
// costs no memory and no disk; Windows would make the file that large, and 32
// bits have too few addresses, so there bbolt decides.
func reserve() int {
	if runtime.GOOS == "windows" || strconv.IntSize == 32 {
		return 0
	}
	return 1 << 30
}

// The file has two buckets. Items holds key -> deadline, value; expiry holds
// deadline, key -> nothing, in the order in which keys run out, so that Sweep
// never reads what has not expired.
var (
	bucketItems  = []byte("items")
	bucketExpiry = []byte("expiry")
)

// boltStore keeps a Store in one bbolt file, for one process.
//
// Updates are group-committed. Each waits in a queue; one goroutine, the
// committer, opens a bbolt transaction, lets the waiting functions run in it one
// after the other and pays for one fsync on behalf of them all. A function
// works on an overlay of its own that is merged only when it returns nil, so a
// failing one takes nothing of its neighbours with it. Functions run on their
// caller's goroutine while the committer stands still, so a panic or
// runtime.Goexit in one unwinds its caller and nobody else.
//
// Neither View nor Update may be called from within a function given to
// either: the inner call could wait for the outer one for ever.
type boltStore struct {
	db   *boltfile.DB
	file *os.File // db's
	now  func() time.Time

	queue   chan *request
	closing chan struct{} // closed by Close: nothing new is taken
	stopped chan struct{} // closed by the committer when it has returned

	// failure is why the committer gave up, written before stopped is closed
	// and read only after; nil when it was merely closed.
	failure error

	closeOnce sync.Once
	closeErr  error
}

// openBolt opens or creates the file at url (file 0600, a directory it has to
// create 0700) and starts its committer, which Close ends. It waits at most one
// second for another process to let go of the file, then fails with ErrInUse.
func openBolt(_ context.Context, url string, opts Options) (Store, error) {
	path := strings.TrimPrefix(url, "file:")
	if err := private.Dir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("cannot create the directory of the store %s: %w", path, durable.Plain(err))
	}
	if err := boltfile.Ensure(path); err != nil {
		return nil, fmt.Errorf("cannot open the store %s: %w", path, durable.Plain(err))
	}
	db, file, err := openFile(path, opts.unsynced)
	if err != nil {
		return nil, err
	}
	b := &boltStore{
		db:      db,
		file:    file,
		now:     opts.Now,
		queue:   make(chan *request, queueLength),
		closing: make(chan struct{}),
		stopped: make(chan struct{}),
	}
	go b.commitLoop()
	return b, nil
}

// openFile opens the database and refuses what is not for this program.
func openFile(path string, unsynced bool) (*boltfile.DB, *os.File, error) {
	return openReady(path, bolt.Options{
		Timeout: lockTimeout,
		NoSync:  unsynced,
		// A commit that outgrows the mapping has to wait for every reader to
		// end; within this much, readers and the committer never meet.
		InitialMmapSize: reserve(),
	}, func(db *boltfile.DB) error { return prepare(db, path) })
}

// openReady opens a database and has ready look at it. What it says is wrong, and what
// else is, become sentences.
func openReady(path string, opts bolt.Options, ready func(*boltfile.DB) error) (*boltfile.DB, *os.File, error) {
	var unfit error
	db, file, err := boltfile.Open(path, opts, summed, func(db *boltfile.DB) error {
		unfit = ready(db)
		return unfit
	})
	_, ofFile := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, nil, words.Errorf("the store %s %w%s; stop that Porchlight first, or choose another data directory", path, ErrInUse, holderOf(path))
	case unfit != nil || ofFile:
		return nil, nil, fmt.Errorf("cannot open the store %s: %w", path, durable.Plain(err))
	case err != nil:
		return nil, nil, fmt.Errorf("cannot open the store %s, it is damaged or not a Porchlight store (restore a copy, or move it away to start afresh): %w", path, err)
	}
	return db, file, nil
}

// summed has the file notice rows that damage took away, or that run out at another time.
func summed(_, value []byte) ([]byte, bool) {
	return value[:min(len(value), deadlineLen)], true
}

// prepare tightens the file's mode, and makes the buckets or, of rows that an earlier version
// wrote, a copy. Nothing of what a newer version wrote is touched.
func prepare(db *boltfile.DB, path string) error {
	made, format := false, 0
	err := db.View(func(tx *boltfile.Tx) error {
		if made = tx.Bucket(bucketItems) != nil; !made {
			return nil
		}
		var err error
		format, err = versionOf(newBoltTx(tx, time.Now()), len(migrations))
		return err
	})
	if kept := boltfile.Kept(path, len(migrations)); kept != "" && errors.Is(err, errNewer) {
		return fmt.Errorf("%w: %s is one", err, kept)
	}
	if err != nil {
		return err
	}
	boltfile.DropKept(path, time.Now())
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(path, 0o600); err != nil {
			return err
		}
	}
	if made && format < len(migrations) {
		if err := db.Keep(path, format); err != nil {
			return fmt.Errorf("the copy from before it is brought up to date could not be made, and nothing was changed: %w", durable.Plain(err))
		}
	}
	if made {
		return nil
	}
	return db.Update(func(tx *boltfile.Tx) error {
		for _, name := range [][]byte{bucketItems, bucketExpiry} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
}

// View runs fn on a snapshot of what is durable, beside any other call.
func (b *boltStore) View(ctx context.Context, fn func(Tx) error) error {
	if err := b.usable(ctx); err != nil {
		return err
	}
	tx, err := b.db.Begin(false)
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	if err != nil {
		return fmt.Errorf("kv: begin reading: %w", err)
	}
	defer tx.Rollback() // a read transaction's only end
	t := newBoltTx(tx, b.now())
	t.readOnly = true
	defer t.end()
	return fn(t)
}

// ViewOf implements Store.
func (b *boltStore) ViewOf(ctx context.Context, rows Rows, fn func(Tx) error) error {
	return viewOf(ctx, b, rows, fn)
}

// PutAll implements Store.
func (b *boltStore) PutAll(ctx context.Context, ttl time.Duration, rows ...Item) error {
	return putAll(ctx, b, ttl, rows)
}

// Update runs fn once, in a group with its neighbours. A context that ends
// while fn still waits for its turn takes it out of the queue; once fn runs the
// outcome is awaited, because it may be durable already.
func (b *boltStore) Update(ctx context.Context, fn func(Tx) error) error {
	return b.do(ctx, func(t *boltTx) error { return fn(t) })
}

// Sweep deletes up to limit expired keys, oldest first, in one transaction.
func (b *boltStore) Sweep(ctx context.Context, limit int) (int, error) {
	if err := checkLimit(limit); err != nil {
		return 0, err
	}
	swept := 0
	err := b.do(ctx, func(t *boltTx) error {
		swept = t.dropExpired(limit)
		return nil
	})
	return swept, err
}

// Close lets the group under way finish, answers ErrClosed to whatever still
// waits, ends the committer and closes the file. Further calls do nothing.
func (b *boltStore) Close() error {
	b.closeOnce.Do(func() {
		close(b.closing)
		<-b.stopped
		if b.failure != nil {
			// bbolt's locks may still be held by what panicked: let go of the
			// file alone.
			b.closeErr = boltfile.LetGo(b.file)
			return
		}
		b.closeErr = b.db.Close()
	})
	return b.closeErr
}

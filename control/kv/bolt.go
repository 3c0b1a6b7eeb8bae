package kv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// ErrInUse is wrapped by OpenBolt when another process holds the file.
var ErrInUse = errors.New("is in use by another process")

// lockTimeout is how long OpenBolt waits for another process to let go.
const lockTimeout = time.Second

// The file has two buckets. Items holds key -> deadline, value; expiry holds
// deadline, key -> nothing, in the order in which keys run out, so that Sweep
// never reads what has not expired.
var (
	bucketItems  = []byte("items")
	bucketExpiry = []byte("expiry")
)

// BoltOptions of OpenBolt; the zero value is fine.
type BoltOptions struct {
	// Now tells the time by which values expire; nil means time.Now.
	Now func() time.Time
}

// Bolt keeps a Store in one bbolt file, for one process.
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
type Bolt struct {
	db  *bolt.DB
	now func() time.Time

	queue   chan *request
	closing chan struct{} // closed by Close: nothing new is taken
	stopped chan struct{} // closed by the committer when it has returned

	// failure is why the committer gave up, written before stopped is closed
	// and read only after; nil when it was merely closed.
	failure error

	closeOnce sync.Once
	closeErr  error
}

var _ Store = (*Bolt)(nil)

// OpenBolt opens or creates the store at path (file 0600, a directory it has to
// create 0700) and starts its committer, which Close ends. It waits at most one
// second for another process to let go of the file, then fails with ErrInUse.
// The errors are sentences for whoever runs the program.
func OpenBolt(path string, opts BoltOptions) (*Bolt, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the directory of the store %s: %w", path, plain(err))
	}
	db, err := openFile(path)
	if err != nil {
		return nil, err
	}
	b := &Bolt{
		db:      db,
		now:     opts.Now,
		queue:   make(chan *request, queueLength),
		closing: make(chan struct{}),
		stopped: make(chan struct{}),
	}
	go b.commitLoop()
	return b, nil
}

// openFile opens the database and refuses a damaged one. bbolt trusts the
// length its header promises, so a file cut short faults on the first read past
// its end: for the time of opening such a fault is made a panic, and that an
// error.
func openFile(path string) (db *bolt.DB, err error) {
	var file *os.File
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			file.Close() // gives the lock back; the mapping stays until exit
			db, err = nil, damaged(path, fmt.Errorf("%v", p))
		}
	}()
	db, err = bolt.Open(path, 0o600, &bolt.Options{
		Timeout:      lockTimeout,
		FreelistType: bolt.FreelistMapType,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			f, err := os.OpenFile(name, flag, mode)
			file = f
			return f, err
		},
	})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, fmt.Errorf("the store %s %w", path, ErrInUse)
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("cannot open the store %s: %w", path, plain(err))
	}
	if err != nil {
		return nil, damaged(path, err)
	}
	if err := prepare(db, file); err != nil {
		db.Close()
		return nil, damaged(path, err)
	}
	return db, nil
}

// prepare tightens the file's mode, compares its length with what its header
// promises and makes the buckets.
func prepare(db *bolt.DB, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := file.Chmod(0o600); err != nil {
			return err
		}
	}
	return db.Update(func(tx *bolt.Tx) error {
		if tx.Size() > info.Size() {
			return fmt.Errorf("it is %d bytes long and should be %d", info.Size(), tx.Size())
		}
		for _, name := range [][]byte{bucketItems, bucketExpiry} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
}

func damaged(path string, err error) error {
	return fmt.Errorf("cannot open the store %s, it is damaged or not a Porchlight store (restore a copy, or move it away to start afresh): %w", path, err)
}

// plain drops the path from a file error whose sentence names it already.
func plain(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// View runs fn on a snapshot of what is durable, beside any other call.
func (b *Bolt) View(ctx context.Context, fn func(Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-b.closing:
		return ErrClosed
	default:
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

// Update runs fn once, in a group with its neighbours. A context that ends
// while fn still waits for its turn takes it out of the queue; once fn runs the
// outcome is awaited, because by then it may be durable.
func (b *Bolt) Update(ctx context.Context, fn func(Tx) error) error {
	return b.do(ctx, func(t *boltTx) error { return fn(t) })
}

// Sweep deletes up to limit expired keys, oldest first, in one transaction.
func (b *Bolt) Sweep(ctx context.Context, limit int) (int, error) {
	if err := checkLimit(limit); err != nil {
		return 0, err
	}
	swept := 0
	err := b.do(ctx, func(t *boltTx) error {
		swept = t.dropExpired(limit)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return swept, nil
}

// Close lets the group under way finish, answers ErrClosed to whatever still
// waits, ends the committer and closes the file. Further calls do nothing.
func (b *Bolt) Close() error {
	b.closeOnce.Do(func() {
		close(b.closing)
		<-b.stopped
		b.closeErr = b.db.Close()
	})
	return b.closeErr
}

// Package kv is the control plane's storage: a transactional, ordered key-value
// store with expiring values. The domain is written once above it. Open chooses
// the kind: one file for one process, a PostgreSQL database for several, or
// memory for tests. Each is written in files of its own and passes one suite
// (kvtest); Dump and Load carry rows from one to another.
//
// Transactions are serializable. A function given to Update may run more than
// once, so it must be pure: make tokens before, send mail after.
package kv

import (
	"context"
	"errors"
	"time"

	"porchlight/internal/words"
)

var (
	// ErrInUse is wrapped by Open when another process holds the file.
	ErrInUse = words.Errorf("is in use by another process")
	// ErrNotEmpty is wrapped by Load when the store holds something already.
	ErrNotEmpty = errors.New("the store is not empty")
	// ErrNotFound is returned by Tx.Get for a key that is absent or expired.
	ErrNotFound = errors.New("kv: no such key")
	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("kv: the store is closed")
	// ErrReadOnly is returned by Put and Delete inside View.
	ErrReadOnly = errors.New("kv: write in a read-only transaction")
)

// Limits of keys and values, in bytes, which Put refuses to exceed, and of the number of
// keys of one GetAll, of the keys that one ViewOf names, and of the rows of one PutAll.
const (
	MaxKey   = 1 << 10
	MaxValue = 1 << 20
	MaxKeys  = 256
	MaxRows  = 4096
)

// Item is one key and its value.
type Item struct {
	Key   string
	Value []byte // owned by the caller
}

// Record is one row as it is carried from store to store.
type Record struct {
	Key     string
	Value   []byte
	Expires time.Time // zero: never
}

// Tx is one transaction. It is not safe for concurrent use and must not be
// kept after the function it was given to returns.
type Tx interface {
	// Get returns a copy of the value, or ErrNotFound.
	Get(key string) ([]byte, error)
	// GetAll returns a copy of the value of each key, nil for what is absent. Where
	// the rows are elsewhere it is one round trip, and a Get of any of these keys
	// is none afterwards. At most MaxKeys at once.
	GetAll(keys ...string) ([][]byte, error)
	// Put stores value. A ttl above zero makes the key absent after that time;
	// zero keeps it until it is deleted, negative is refused. A ttl of a day or
	// more may last up to an hour longer.
	Put(key string, value []byte, ttl time.Duration) error
	// Delete removes the key; an absent key is no error.
	Delete(key string) error
	// Scan returns up to limit items whose keys begin with prefix and sort
	// (bytewise) after the key after, in order. It sees the transaction's own
	// writes.
	Scan(prefix, after string, limit int) ([]Item, error)
}

// Store is safe for concurrent use.
type Store interface {
	// View runs fn on a consistent snapshot.
	View(ctx context.Context, fn func(Tx) error) error
	// ViewOf is View for a function whose rows are known before: it reads them, of one
	// moment, and then runs fn once on what it has read. Where the rows are elsewhere
	// that is one statement and one round trip, and nothing is held there while fn
	// runs. What fn asks for besides is a NotReadError. Whoever puts rows below a
	// prefix bounds how many that are.
	ViewOf(ctx context.Context, rows Rows, fn func(Tx) error) error
	// Update runs fn and, when it returns nil, returns only once its writes are
	// durable. When fn returns an error nothing of it is kept and the error is
	// returned unchanged.
	Update(ctx context.Context, fn func(Tx) error) error
	// PutAll stores rows, at most MaxRows, all of them or none, each to live for ttl as
	// with Put. It is for rows that are written again and again and by which no Update
	// decides, such as a lease: where the rows are elsewhere it is one statement, in no
	// order with what transactions read beside it, and may be carried out twice.
	PutAll(ctx context.Context, ttl time.Duration, rows ...Item) error
	// Sweep deletes up to limit expired keys and says how many.
	Sweep(ctx context.Context, limit int) (int, error)
	// Dump calls fn for every row that has not expired, in key order, as they
	// were at one moment; the store goes on working beside it. It ends with
	// fn's first error, which it returns unchanged.
	Dump(ctx context.Context, fn func(Record) error) error
	// Load fills a store that holds nothing but its version with what next
	// returns until io.EOF, and says how many rows that were. It keeps all of
	// them or, on any error, none. The keys must rise. The version is then that
	// of the rows, and Open is what brings them up to date.
	Load(ctx context.Context, next func() (Record, error)) (int, error)
	Close() error
}

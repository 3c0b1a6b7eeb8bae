package boltfile

import (
	"bytes"
	"encoding/binary"

	bolt "go.etcd.io/bbolt"
)

// DB is an open database. It is bbolt's, but that nothing is written past the sum
// of its rows.
type DB struct {
	db     *bolt.DB
	opened sum // of what was there when it was opened
}

// Begin begins a transaction, which ends with Commit or Rollback.
func (db *DB) Begin(writable bool) (*Tx, error) {
	tx, err := db.db.Begin(writable)
	if err != nil {
		return nil, err
	}
	return &Tx{tx: tx, opened: db.opened}, nil
}

// View runs fn in a transaction that reads.
func (db *DB) View(fn func(*Tx) error) error {
	tx, err := db.Begin(false)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return fn(tx)
}

// Update runs fn in a transaction, which is durable when it returns nil.
func (db *DB) Update(fn func(*Tx) error) error {
	tx, err := db.Begin(true)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Close waits for transactions under way.
func (db *DB) Close() error { return db.db.Close() }

// Tx is a transaction of a DB.
type Tx struct {
	tx     *bolt.Tx
	opened sum
	added  uint64 // what it adds to the sum, modulo 2^64
	buf    []byte // of hash
}

// ID is the number of the transaction, or for one that reads of the last that wrote.
func (tx *Tx) ID() int { return tx.tx.ID() }

// Commit makes what was written durable, and the sum with it.
func (tx *Tx) Commit() error {
	if err := tx.keepSum(); err != nil {
		_ = tx.tx.Rollback()
		return err
	}
	return tx.tx.Commit()
}

// Rollback ends a transaction that reads, or drops what it wrote.
func (tx *Tx) Rollback() error { return tx.tx.Rollback() }

// Bucket is nil for a name that has none.
func (tx *Tx) Bucket(name []byte) *Bucket {
	b := tx.tx.Bucket(name)
	if b == nil {
		return nil
	}
	return &Bucket{tx: tx, name: name, b: b}
}

// CreateBucketIfNotExists returns the bucket of that name.
func (tx *Tx) CreateBucketIfNotExists(name []byte) (*Bucket, error) {
	if b := tx.Bucket(name); b != nil {
		return b, nil
	}
	b, err := tx.tx.CreateBucket(name)
	if err != nil {
		return nil, err
	}
	tx.added += tx.hash(name, nil, sequence(b))
	return &Bucket{tx: tx, name: name, b: b}, nil
}

// DeleteBucket deletes a bucket and what is in it.
func (tx *Tx) DeleteBucket(name []byte) error {
	var gone uint64
	if b := tx.tx.Bucket(name); b != nil {
		gone = tx.hash(name, nil, sequence(b))
		_ = b.ForEach(func(key, value []byte) error { gone += tx.hash(name, key, value); return nil })
	}
	if err := tx.tx.DeleteBucket(name); err != nil {
		return err
	}
	tx.added -= gone
	return nil
}

// Bucket holds rows by their keys, in the order of those. What it returns is valid
// until the transaction ends, and a key or value that it is given must not change
// until then.
type Bucket struct {
	tx   *Tx
	name []byte
	b    *bolt.Bucket
}

// Get returns nil for a key that is not there.
func (b *Bucket) Get(key []byte) []byte { return b.b.Get(key) }

// ForEach calls fn for each row, which must change none of the bucket.
func (b *Bucket) ForEach(fn func(key, value []byte) error) error { return b.b.ForEach(fn) }

// Len counts the rows.
func (b *Bucket) Len() int { return b.b.Stats().KeyN }

// Sequence is the last number of NextSequence.
func (b *Bucket) Sequence() uint64 { return b.b.Sequence() }

// Cursor moves over rows; a nil key is no row.
type Cursor interface {
	First() (key, value []byte)
	Last() (key, value []byte)
	Next() (key, value []byte)
	Prev() (key, value []byte)
	Seek(key []byte) (k, value []byte)
}

// Cursor returns a new one.
func (b *Bucket) Cursor() Cursor { return b.b.Cursor() }

// Put writes a row over the one that has its key.
func (b *Bucket) Put(key, value []byte) error {
	added := b.tx.hash(b.name, key, value) - b.old(key)
	if err := b.b.Put(key, value); err != nil {
		return err
	}
	b.tx.added += added
	return nil
}

// Delete deletes a row if there is one.
func (b *Bucket) Delete(key []byte) error {
	old := b.old(key)
	if err := b.b.Delete(key); err != nil {
		return err
	}
	b.tx.added -= old
	return nil
}

// NextSequence returns a number that only grows.
func (b *Bucket) NextSequence() (uint64, error) {
	old := b.tx.hash(b.name, nil, sequence(b.b))
	n, err := b.b.NextSequence()
	if err != nil {
		return 0, err
	}
	b.tx.added += b.tx.hash(b.name, nil, sequence(b.b)) - old
	return n, nil
}

// old is what the row with this key counts for in the sum. Get would not do: of an
// empty value that was written a moment ago it returns nil.
func (b *Bucket) old(key []byte) uint64 {
	k, value := b.b.Cursor().Seek(key)
	if !bytes.Equal(k, key) {
		return 0
	}
	return b.tx.hash(b.name, key, value)
}

// sequence is that of a bucket as it is hashed.
func sequence(b *bolt.Bucket) []byte { return binary.NativeEndian.AppendUint64(nil, b.Sequence()) }

package boltfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// bbolt has a checksum of its two heads alone. In this bucket every commit leaves its
// number, the sum over the keys of the others, and a checksum of both. A file without it
// is from before there were sums, and gets one by the next commit.
//
// Of a value the sum has its length, and what Counted names: a letter that is wrong in it
// does less harm than a store that does not open, and whoever reads the row decodes it.
var (
	sumBucket = []byte("sum")
	sumKey    = []byte("rows")
)

// errChanged is of rows that are not those of the last commit.
var errChanged = errors.New("the rows in it are not those that were written")

// Counted says whether the rows of a bucket are part of the sum, and of a value which
// part is. It is about rows that decide something. The answer must stay what it is for a
// store that was written: by another one its sum would be wrong, and it would not open.
type Counted func(bucket, value []byte) (part []byte, counted bool)

// DB is a bbolt database whose rows are summed up.
type DB struct {
	db      *bolt.DB
	counted Counted
	// As Open found them: the last commit, and the sum of its rows.
	opened int
	sum    uint64
}

// Tx is a transaction of it. Whoever writes does so through its buckets.
type Tx struct {
	*bolt.Tx
	db     *DB
	change uint64 // of the sum
}

// Bucket is a bucket of a Tx, without others in it.
type Bucket struct {
	*bolt.Bucket
	tx   *Tx
	name []byte
}

// Begin is bbolt's.
func (d *DB) Begin(writable bool) (*Tx, error) {
	tx, err := d.db.Begin(writable)
	if err != nil {
		return nil, err
	}
	return &Tx{Tx: tx, db: d}, nil
}

// View is bbolt's.
func (d *DB) View(fn func(*Tx) error) error {
	return d.db.View(func(tx *bolt.Tx) error { return fn(&Tx{Tx: tx, db: d}) })
}

// Update is bbolt's.
func (d *DB) Update(fn func(*Tx) error) error {
	tx, err := d.Begin(true)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Close is bbolt's.
func (d *DB) Close() error { return d.db.Close() }

// Commit keeps the sum with what it sums up.
func (tx *Tx) Commit() error {
	b, err := tx.Tx.CreateBucketIfNotExists(sumBucket)
	if err == nil {
		before, _, _ := readSum(b)
		if tx.ID() == tx.db.opened+1 { // what was opened may have none, or that of other rows
			before = tx.db.sum
		}
		err = b.Put(sumKey, sumRow(tx.ID(), before+tx.change))
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Tx.Commit()
}

// Bucket is bbolt's.
func (tx *Tx) Bucket(name []byte) *Bucket {
	b := tx.Tx.Bucket(name)
	if b == nil {
		return nil
	}
	return &Bucket{b, tx, name}
}

// CreateBucketIfNotExists is bbolt's.
func (tx *Tx) CreateBucketIfNotExists(name []byte) (*Bucket, error) {
	if b := tx.Bucket(name); b != nil {
		return b, nil
	}
	return tx.CreateBucket(name)
}

// CreateBucket is bbolt's.
func (tx *Tx) CreateBucket(name []byte) (*Bucket, error) {
	b, err := tx.Tx.CreateBucket(name)
	if err != nil {
		return nil, err
	}
	tx.change += tx.db.rowSum(name, nil, nil)
	return &Bucket{b, tx, name}, nil
}

// DeleteBucket is bbolt's.
func (tx *Tx) DeleteBucket(name []byte) error {
	if b := tx.Tx.Bucket(name); b != nil {
		tx.change -= tx.db.rowSum(name, nil, nil)
		_ = b.ForEach(func(key, value []byte) error {
			tx.change -= tx.db.rowSum(name, key, value)
			return nil
		})
	}
	return tx.Tx.DeleteBucket(name)
}

// Put is bbolt's.
func (b *Bucket) Put(key, value []byte) error {
	before := b.rowSum(key)
	if value == nil {
		value = []byte{} // bbolt would not tell it from none until it is committed
	}
	if err := b.Bucket.Put(key, value); err != nil {
		return err
	}
	b.tx.change += b.tx.db.rowSum(b.name, key, value) - before
	return nil
}

// Delete is bbolt's.
func (b *Bucket) Delete(key []byte) error {
	before := b.rowSum(key)
	if err := b.Bucket.Delete(key); err != nil {
		return err
	}
	b.tx.change -= before
	return nil
}

// rowSum is what the row at key adds to the sum, 0 where there is none.
func (b *Bucket) rowSum(key []byte) uint64 {
	value := b.Get(key)
	if value == nil {
		return 0
	}
	return b.tx.db.rowSum(b.name, key, value)
}

// rowSum is what a row adds to the sum, and without a key, which no row is, its bucket.
func (d *DB) rowSum(bucket, key, value []byte) uint64 {
	part, counted := d.counted(bucket, value)
	if !counted {
		return 0
	}
	return hash(bucket, key, part, binary.BigEndian.AppendUint32(nil, uint32(len(value))))
}

func hash(parts ...[]byte) uint64 {
	h := sha256.New()
	for _, part := range parts {
		var length [4]byte
		binary.BigEndian.PutUint32(length[:], uint32(len(part)))
		h.Write(length[:])
		h.Write(part)
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

func sumRow(commit int, sum uint64) []byte {
	row := binary.BigEndian.AppendUint64(nil, uint64(commit))
	row = binary.BigEndian.AppendUint64(row, sum)
	return binary.BigEndian.AppendUint64(row, hash(sumBucket, sumKey, row))
}

// readSum returns the sum that is kept in its bucket, and of which commit it is. It is
// not kept where there is none, or it is damaged.
func readSum(b *bolt.Bucket) (sum uint64, commit int, kept bool) {
	row := b.Get(sumKey)
	if len(row) != 24 {
		return 0, 0, false
	}
	commit, sum = int(binary.BigEndian.Uint64(row)), binary.BigEndian.Uint64(row[8:])
	return sum, commit, bytes.Equal(row, sumRow(commit, sum))
}

// sumOf reads every row, finds it again as a search does, and returns their sum. Rows
// that are not those of the last commit are errChanged; what a program of before sums
// committed has none to be compared with.
func (d *DB) sumOf(tx *bolt.Tx) (sum uint64, err error) {
	err = tx.ForEach(func(name []byte, b *bolt.Bucket) error {
		if b == nil {
			return fmt.Errorf("%w: %q is no bucket", errChanged, name)
		}
		_, _, kept := readSum(b)
		switch isSum := bytes.Equal(name, sumBucket); {
		case isSum != kept: // it is damaged, or its name is
			return errChanged
		case isSum:
			return nil
		}
		sum += d.rowSum(name, nil, nil)
		return b.ForEach(func(key, value []byte) error {
			sum += d.rowSum(name, key, value)
			if found := b.Get(key); found == nil || !bytes.Equal(found, value) {
				return fmt.Errorf("%w: a row is not where it is looked for", errChanged)
			}
			return nil
		})
	})
	if err != nil {
		return 0, err
	}
	if b := tx.Bucket(sumBucket); b != nil {
		if want, commit, _ := readSum(b); commit == tx.ID() && sum != want {
			return 0, errChanged
		}
	}
	return sum, nil
}

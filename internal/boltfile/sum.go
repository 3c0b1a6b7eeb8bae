package boltfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"

	bolt "go.etcd.io/bbolt"

	"porchlight/internal/words"
)

// Each transaction writes the sum of all rows: what is read when the database is
// opened must add up to it. It is kept in two buckets, of which one comes before all
// others and one after them, the second a digest of the first, so that neither can be
// lost or changed without the other telling.
//
// A program that does not know of the sum leaves it as it is. Then the number of the
// transaction in it is not that of the file's last one: nothing is judged, and the next
// transaction writes the sum anew.
const (
	sumBucket   = "#sum"
	checkBucket = "~sum"
	sumKey      = "sum"
)

var errOtherRows = words.Errorf("what is in it is not what was written")

// sum is of all rows as a transaction left them.
type sum struct {
	tx   uint64 // its number
	rows uint64 // their hashes, added modulo 2^64
}

// encode returns what is kept in sumBucket and in checkBucket.
func (s sum) encode() (row, check []byte) {
	row = binary.BigEndian.AppendUint64(nil, s.tx)
	row = binary.BigEndian.AppendUint64(row, s.rows)
	digest := sha256.Sum256(row)
	return row, digest[:]
}

// decode reads what encode made.
func decode(row, check []byte) (s sum, ok bool) {
	if len(row) != 16 {
		return s, false
	}
	s = sum{binary.BigEndian.Uint64(row), binary.BigEndian.Uint64(row[8:])}
	_, want := s.encode()
	return s, bytes.Equal(check, want)
}

// keepSum writes the sum with what else the transaction writes. It goes on from what
// the one before it left in the file: that one may have failed and still be there.
func (tx *Tx) keepSum() error {
	was := tx.opened
	before := uint64(tx.ID() - 1)
	if was.tx != before {
		var ok bool
		if was, ok = decode(tx.get(sumBucket), tx.get(checkBucket)); !ok || was.tx != before {
			return nil // of what is there nobody knows the sum until it is opened again
		}
	}
	row, check := sum{before + 1, was.rows + tx.added}.encode()
	return errors.Join(tx.put(sumBucket, row), tx.put(checkBucket, check))
}

func (tx *Tx) get(bucket string) []byte {
	if b := tx.tx.Bucket([]byte(bucket)); b != nil {
		return b.Get([]byte(sumKey))
	}
	return nil
}

func (tx *Tx) put(bucket string, value []byte) error {
	b, err := tx.tx.CreateBucketIfNotExists([]byte(bucket))
	if err != nil {
		return err
	}
	return b.Put([]byte(sumKey), value)
}

// hash is what a row counts for; without a key it is the bucket itself, and the value
// its sequence.
func (tx *Tx) hash(bucket, key, value []byte) (h uint64) {
	tx.buf, h = hash(tx.buf, bucket, key, value)
	return h
}

func hash(buf, bucket, key, value []byte) ([]byte, uint64) {
	buf = binary.AppendUvarint(buf[:0], uint64(len(bucket)))
	buf = append(buf, bucket...)
	buf = binary.AppendUvarint(buf, uint64(len(key)))
	buf = append(buf, key...)
	buf = append(buf, value...)
	digest := sha256.Sum256(buf)
	return buf, binary.BigEndian.Uint64(digest[:])
}

// verify reads the whole database and returns the sum of its rows. It is an error
// where they are not those of the sum that is kept.
func verify(tx *bolt.Tx, file *os.File) (is sum, err error) {
	r, err := readAll(tx, file)
	if err != nil {
		return sum{}, err
	}
	is = sum{uint64(tx.ID()), r.rows}
	if r.row == nil && r.check == nil {
		return is, nil // no program that keeps it has written here
	}
	if kept, ok := decode(r.row, r.check); !ok || kept.tx == is.tx && kept.rows != is.rows {
		return sum{}, errOtherRows
	}
	return is, nil
}

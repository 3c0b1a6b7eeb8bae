package store

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"porchlight/internal/boltfile"
)

// Rows are JSON, but for single times, which are the text of RFC 3339. Of the functions
// here, what says in an error which row it is that cannot be read.

// put writes value under key.
func put(b *boltfile.Bucket, key []byte, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode a %T: %w", value, err)
	}
	return b.Put(key, raw)
}

// putOrDelete writes value under name, or removes what is there when value is nil.
func putOrDelete[T any](b *boltfile.Bucket, name string, value *T) error {
	if value == nil {
		return b.Delete([]byte(name))
	}
	return put(b, []byte(name), value)
}

// get reads what is under key; ok is false, and into left as it is, where nothing is.
func get(b *boltfile.Bucket, key []byte, what string, into any) (ok bool, err error) {
	raw := b.Get(key)
	if raw == nil {
		return false, nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return false, fmt.Errorf("%s is damaged: %w", what, err)
	}
	return true, nil
}

// getAll reads every row of a bucket, in the order of their keys.
func getAll[T any](b *boltfile.Bucket, what string) (all []T, err error) {
	err = b.ForEach(func(k, raw []byte) error {
		var value T
		if err := json.Unmarshal(raw, &value); err != nil {
			return fmt.Errorf("%s (%x) is damaged: %w", what, k, err)
		}
		all = append(all, value)
		return nil
	})
	return all, err
}

// getNamed reads every row of a bucket by its key, a name.
func getNamed[T any](b *boltfile.Bucket, into map[string]T) error {
	return b.ForEach(func(k, raw []byte) error {
		var value T
		if err := json.Unmarshal(raw, &value); err != nil {
			return fmt.Errorf("the record of %q is damaged: %w", k, err)
		}
		into[string(k)] = value
		return nil
	})
}

// putTime writes one time.
func putTime(b *boltfile.Bucket, key []byte, at time.Time) error {
	raw, err := at.UTC().MarshalText()
	if err != nil {
		return fmt.Errorf("encode a time: %w", err)
	}
	return b.Put(key, raw)
}

// save is put in a transaction of its own.
func (s *Store) save(bucket, key []byte, value any) error {
	return s.update(func(tx *boltfile.Tx) error { return put(tx.Bucket(bucket), key, value) })
}

// load is get in a transaction of its own.
func (s *Store) load(bucket, key []byte, what string, into any) (ok bool, err error) {
	err = s.view(func(tx *boltfile.Tx) error {
		ok, err = get(tx.Bucket(bucket), key, what, into)
		return err
	})
	return ok, err
}

// saveTime is putTime in a transaction of its own.
func (s *Store) saveTime(bucket, key []byte, at time.Time) error {
	return s.update(func(tx *boltfile.Tx) error { return putTime(tx.Bucket(bucket), key, at) })
}

// loadTime reads what putTime wrote; ok is false where nothing is.
func (s *Store) loadTime(bucket, key []byte, what string) (at time.Time, ok bool, err error) {
	err = s.view(func(tx *boltfile.Tx) error {
		raw := tx.Bucket(bucket).Get(key)
		if raw == nil {
			return nil
		}
		if err := at.UnmarshalText(raw); err != nil {
			return fmt.Errorf("%s is damaged: %w", what, err)
		}
		ok = true
		return nil
	})
	return at, ok, err
}

// numbered is the key of a row that has a number: 8 bytes, big endian.
func numbered(id uint64) []byte { return binary.BigEndian.AppendUint64(nil, id) }

// number is the number that such a key, or a row that holds one, is of; 0 for none.
func number(key []byte) uint64 {
	if len(key) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(key)
}

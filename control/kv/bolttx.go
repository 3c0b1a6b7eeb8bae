package kv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
)

// deadlineLen is the length of the deadline in front of each stored value and
// each key of the expiry index: nanoseconds since 1970, big endian, zero for
// never.
const deadlineLen = 8

// boltTx is one function's view of a bbolt transaction: its own writes, kept in
// a map until they are merged, over what the transaction holds.
type boltTx struct {
	items, expiry *bolt.Bucket
	now           int64 // nanoseconds since 1970; one instant for the whole function
	readOnly      bool
	over          bool

	writes map[string]write
	size   int // of the writes, in bytes, with something for each
}

// write is what a transaction did to one key.
type write struct {
	value    []byte
	deadline int64
	deleted  bool
}

func newBoltTx(tx *bolt.Tx, now time.Time) *boltTx {
	return &boltTx{
		items:  tx.Bucket(bucketItems),
		expiry: tx.Bucket(bucketExpiry),
		now:    max(now.UnixNano(), 1),
	}
}

// end makes every later call fail instead of reaching into a transaction that
// belongs to somebody else by then.
func (t *boltTx) end() { t.over = true }

func (t *boltTx) Get(key string) ([]byte, error) {
	if t.over {
		return nil, errTxOver
	}
	if w, ok := t.writes[key]; ok {
		if w.deleted || t.expired(w.deadline) {
			return nil, ErrNotFound
		}
		return clone(w.value), nil
	}
	raw := t.items.Get([]byte(key))
	if raw == nil {
		return nil, ErrNotFound
	}
	deadline, value, err := unpack(key, raw)
	if err != nil {
		return nil, err
	}
	if t.expired(deadline) {
		return nil, ErrNotFound
	}
	return clone(value), nil
}

func (t *boltTx) GetAll(keys ...string) ([][]byte, error) {
	if err := checkKeys(keys); err != nil {
		return nil, err
	}
	values := make([][]byte, len(keys))
	for i, key := range keys {
		value, err := t.Get(key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		values[i] = value
	}
	return values, nil
}

func (t *boltTx) Put(key string, value []byte, ttl time.Duration) error {
	if t.over {
		return errTxOver
	}
	if t.readOnly {
		return ErrReadOnly
	}
	if err := checkPut(key, value, ttl); err != nil {
		return err
	}
	var deadline int64
	if ttl > 0 {
		deadline = expiryOf(time.Unix(0, t.now), ttl).UnixNano()
		if deadline < t.now { // past the year 2262
			deadline = math.MaxInt64
		}
	}
	t.write(key, write{value: clone(value), deadline: deadline})
	return nil
}

func (t *boltTx) Delete(key string) error {
	if t.over {
		return errTxOver
	}
	if t.readOnly {
		return ErrReadOnly
	}
	if key == "" || len(key) > MaxKey {
		return nil // never stored
	}
	t.write(key, write{deleted: true})
	return nil
}

func (t *boltTx) write(key string, w write) {
	if t.writes == nil {
		t.writes = make(map[string]write)
	}
	t.writes[key] = w
	t.size += deadlineLen + len(key) + len(w.value)
}

func (t *boltTx) Scan(prefix, after string, limit int) ([]Item, error) {
	if t.over {
		return nil, errTxOver
	}
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	// Two ordered runs are merged: the transaction's own keys and the stored
	// ones. Where both have a key the own one counts.
	var own []string
	for key := range t.writes {
		if key > after && strings.HasPrefix(key, prefix) {
			own = append(own, key)
		}
	}
	slices.Sort(own)

	c := t.items.Cursor()
	stored, raw := c.Seek([]byte(max(prefix, after)))
	if stored != nil && string(stored) <= after {
		stored, raw = c.Next()
	}
	var items []Item
	for len(items) < limit {
		if stored != nil && !bytes.HasPrefix(stored, []byte(prefix)) {
			stored = nil
		}
		if stored == nil && len(own) == 0 {
			break
		}
		if len(own) > 0 && (stored == nil || own[0] <= string(stored)) {
			key := own[0]
			own = own[1:]
			if stored != nil && key == string(stored) {
				stored, raw = c.Next()
			}
			if w := t.writes[key]; !w.deleted && !t.expired(w.deadline) {
				items = append(items, Item{Key: key, Value: clone(w.value)})
			}
			continue
		}
		key := string(stored)
		deadline, value, err := unpack(key, raw)
		if err != nil {
			return nil, err
		}
		if !t.expired(deadline) {
			items = append(items, Item{Key: key, Value: clone(value)})
		}
		stored, raw = c.Next()
	}
	return items, nil
}

// dropExpired deletes up to limit expired keys, oldest first, and says how
// many. It reads the index only, and is meant for a transaction without other
// writes.
func (t *boltTx) dropExpired(limit int) int {
	n := 0
	c := t.expiry.Cursor()
	for k, _ := c.First(); k != nil && n < limit; k, _ = c.Next() {
		if !t.expired(int64(binary.BigEndian.Uint64(k))) {
			break
		}
		t.write(string(k[deadlineLen:]), write{deleted: true})
		n++
	}
	return n
}

// merge carries the writes into the bbolt transaction and keeps the expiry
// index in step. It runs on the committer, after end.
func (t *boltTx) merge() error {
	for key, w := range t.writes {
		k := []byte(key)
		var old int64 // deadline
		if raw := t.items.Get(k); raw != nil {
			var err error
			if old, _, err = unpack(key, raw); err != nil {
				return err
			}
			if old != 0 && (w.deleted || old != w.deadline) {
				if err := t.expiry.Delete(expiryKey(old, k)); err != nil {
					return err
				}
			}
		}
		if w.deleted {
			if err := t.items.Delete(k); err != nil {
				return err
			}
			continue
		}
		if err := t.items.Put(k, pack(w.deadline, w.value)); err != nil {
			return err
		}
		if w.deadline != 0 && w.deadline != old {
			if err := t.expiry.Put(expiryKey(w.deadline, k), nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *boltTx) expired(deadline int64) bool { return deadline != 0 && deadline <= t.now }

func pack(deadline int64, value []byte) []byte {
	b := make([]byte, deadlineLen, deadlineLen+len(value))
	binary.BigEndian.PutUint64(b, uint64(deadline))
	return append(b, value...)
}

// unpack splits a stored value; the result points into raw.
func unpack(key string, raw []byte) (deadline int64, value []byte, err error) {
	if len(raw) < deadlineLen {
		return 0, nil, fmt.Errorf("kv: the stored value of %q is damaged", key)
	}
	return int64(binary.BigEndian.Uint64(raw)), raw[deadlineLen:], nil
}

func expiryKey(deadline int64, key []byte) []byte {
	b := make([]byte, deadlineLen, deadlineLen+len(key))
	binary.BigEndian.PutUint64(b, uint64(deadline))
	return append(b, key...)
}

// clone never answers nil, so that a stored empty value reads as empty.
func clone(b []byte) []byte { return append([]byte{}, b...) }

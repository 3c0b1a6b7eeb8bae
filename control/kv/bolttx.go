package kv

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"porchlight/internal/boltfile"
)

// deadlineLen is the length of the deadline in front of each stored value and
// each key of the expiry index: nanoseconds since 1970, big endian, zero for
// never.
const deadlineLen = 8

// boltTx is one function's view of a bbolt transaction: its own writes, until they
// are merged, over what the transaction holds.
type boltTx struct {
	overlay
	items, expiry *boltfile.Bucket
}

func newBoltTx(tx *boltfile.Tx, now time.Time) *boltTx {
	return &boltTx{
		overlay: overlay{now: now},
		items:   tx.Bucket(bucketItems),
		expiry:  tx.Bucket(bucketExpiry),
	}
}

func (t *boltTx) Get(key string) ([]byte, error) {
	if value, decided, err := t.own(key); decided {
		return value, err
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

func (t *boltTx) GetAll(keys ...string) ([][]byte, error) { return getEach(t, keys) }

func (t *boltTx) Scan(prefix, after string, limit int) ([]Item, error) {
	if err := t.mayScan(limit); err != nil {
		return nil, err
	}
	c := t.items.Cursor()
	key, raw := c.Seek([]byte(max(prefix, after)))
	if key != nil && string(key) <= after {
		key, raw = c.Next()
	}
	return t.merge(t.under(prefix, after), limit, func() (Item, bool, error) {
		for ; key != nil && bytes.HasPrefix(key, []byte(prefix)); key, raw = c.Next() {
			deadline, value, err := unpack(string(key), raw)
			if err != nil {
				return Item{}, false, err
			}
			if !t.expired(deadline) {
				item := Item{Key: string(key), Value: clone(value)}
				key, raw = c.Next()
				return item, true, nil
			}
		}
		return Item{}, false, nil
	})
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
		t.note(string(k[deadlineLen:]), write{deleted: true})
		n++
	}
	return n
}

// carry takes the writes into the bbolt transaction and keeps the expiry
// index in step. It runs on the committer, after end. The keys rise, which is
// cheap where there are many: bbolt splits its pages only when it commits.
func (t *boltTx) carry() error {
	for _, key := range t.under("", "") {
		k, w := []byte(key), t.writes[key]
		var old, deadline int64
		if !w.expires.IsZero() {
			deadline = deadlineOf(w.expires)
		}
		if raw := t.items.Get(k); raw != nil {
			var err error
			if old, _, err = unpack(key, raw); err != nil {
				return err
			}
			if old != 0 && (w.deleted || old != deadline) {
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
		if err := t.items.Put(k, pack(deadline, w.value)); err != nil {
			return err
		}
		if deadline != 0 && deadline != old {
			if err := t.expiry.Put(expiryKey(deadline, k), nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *boltTx) expired(deadline int64) bool { return deadline != 0 && deadline <= t.now.UnixNano() }

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

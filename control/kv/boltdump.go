package kv

import (
	"context"
	"time"
)

// Dump holds a read transaction of the file, so pages given free meanwhile are
// used again only afterwards.
func (b *boltStore) Dump(ctx context.Context, fn func(Record) error) error {
	return b.View(ctx, func(tx Tx) error {
		t := tx.(*boltTx)
		c := t.items.Cursor()
		for k, raw := c.First(); k != nil; k, raw = c.Next() {
			if err := ctx.Err(); err != nil {
				return err
			}
			deadline, value, err := unpack(string(k), raw)
			if err != nil {
				return err
			}
			if t.expired(deadline) {
				continue
			}
			r := Record{Key: string(k), Value: clone(value)}
			if deadline != 0 {
				r.Expires = time.Unix(0, deadline).UTC()
			}
			if err := fn(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// Load is one transaction of the file, whose changes are in memory until the
// end.
func (b *boltStore) Load(ctx context.Context, next func() (Record, error)) (n int, err error) {
	err = b.do(ctx, func(t *boltTx) (err error) {
		n, err = t.load(ctx, t, next)
		return err
	})
	return n, err
}

// deadlineOf is a time as bolt keeps it; what no int64 can hold is the last
// there is.
func deadlineOf(t time.Time) int64 {
	const last = 1<<63 - 1
	if t.After(time.Unix(0, last)) {
		return last
	}
	return max(t.UnixNano(), 1)
}

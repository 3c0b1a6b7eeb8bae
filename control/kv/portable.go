package kv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	bolt "go.etcd.io/bbolt"
)

// ErrNotEmpty is wrapped by Load when the store holds something already.
var ErrNotEmpty = errors.New("the store is not empty")

// Record is one row as it is carried from store to store.
type Record struct {
	Key     string
	Value   []byte
	Expires time.Time // zero: never
}

// Portable is a Store whose rows can be carried to another one, of whatever
// engine.
type Portable interface {
	Store
	// Dump calls fn for every row that has not expired, in key order, as they
	// were at one moment; the store goes on working beside it. It ends with
	// fn's first error, which it returns unchanged.
	Dump(ctx context.Context, fn func(Record) error) error
	// Load fills an empty store with what next returns until io.EOF, and says
	// how many rows that were. It keeps all of them or, on any error, none. The
	// keys must rise.
	Load(ctx context.Context, next func() (Record, error)) (int, error)
}

var (
	_ Portable = (*Bolt)(nil)
	_ Portable = (*Postgres)(nil)
)

// checked passes on what next returns, as long as a store may hold it.
func checked(ctx context.Context, next func() (Record, error)) func() (Record, error) {
	last := ""
	return func() (Record, error) {
		if err := ctx.Err(); err != nil {
			return Record{}, err
		}
		r, err := next()
		if err != nil {
			return Record{}, err
		}
		if err := checkPut(r.Key, r.Value, 0); err != nil {
			return Record{}, err
		}
		if r.Key <= last {
			return Record{}, fmt.Errorf("kv: the key %q comes after %q", r.Key, last)
		}
		last = r.Key
		return r, nil
	}
}

// Dump holds a read transaction of the file, so pages given free meanwhile are
// used again only afterwards.
func (b *Bolt) Dump(ctx context.Context, fn func(Record) error) error {
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
func (b *Bolt) Load(ctx context.Context, next func() (Record, error)) (int, error) {
	select {
	case <-b.closing:
		return 0, ErrClosed
	case <-b.stopped:
		return 0, b.refusal()
	default:
	}
	next = checked(ctx, next)
	n := 0
	err := b.db.Update(func(tx *bolt.Tx) error {
		items, expiry := tx.Bucket(bucketItems), tx.Bucket(bucketExpiry)
		if k, _ := items.Cursor().First(); k != nil {
			return ErrNotEmpty
		}
		for {
			r, err := next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			var deadline int64
			if !r.Expires.IsZero() {
				deadline = deadlineOf(r.Expires)
				if err := expiry.Put(expiryKey(deadline, []byte(r.Key)), nil); err != nil {
					return err
				}
			}
			if err := items.Put([]byte(r.Key), pack(deadline, r.Value)); err != nil {
				return err
			}
			n++
		}
	})
	if err != nil {
		return 0, err
	}
	return n, nil
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

// Dump reads in one REPEATABLE READ transaction.
func (p *Postgres) Dump(ctx context.Context, fn func(Record) error) error {
	c, err := p.begin(ctx)
	if err != nil {
		return err
	}
	defer c.end()
	t, err := c.open(beginView)
	if err != nil {
		return err
	}
	defer t.end()
	rows, err := t.conn.Query(ctx, "select key, value, expires from kv where expires is null or expires > $1 order by key", t.now)
	if err != nil {
		return c.explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		var key []byte
		var r Record
		var expires *time.Time
		if err := rows.Scan(&key, &r.Value, &expires); err != nil {
			return c.explain(err)
		}
		r.Key = string(key)
		if expires != nil {
			r.Expires = expires.UTC()
		}
		if err := fn(r); err != nil {
			return err
		}
	}
	return c.explain(rows.Err())
}

// Load copies the rows in one SERIALIZABLE transaction.
func (p *Postgres) Load(ctx context.Context, next func() (Record, error)) (int, error) {
	c, err := p.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer c.end()
	t, err := c.open(beginUpdate)
	if err != nil {
		return 0, err
	}
	defer t.end()
	var filled bool
	if err := t.conn.QueryRow(ctx, "select exists (select 1 from kv)").Scan(&filled); err != nil {
		return 0, c.explain(err)
	}
	if filled {
		return 0, ErrNotEmpty
	}
	next = checked(ctx, next)
	var theirs error // next's error, which COPY would hide behind its own
	n, err := t.conn.CopyFrom(ctx, pgx.Identifier{"kv"}, []string{"key", "value", "expires"},
		pgx.CopyFromFunc(func() ([]any, error) {
			r, err := next()
			if errors.Is(err, io.EOF) {
				return nil, nil
			}
			if err != nil {
				theirs = err
				return nil, err
			}
			return []any{[]byte(r.Key), clone(r.Value), upToMicro(r.Expires)}, nil
		}))
	if theirs != nil {
		return 0, theirs
	}
	if err != nil {
		return 0, c.explain(err)
	}
	if _, err := t.conn.Exec(ctx, "commit"); err != nil {
		if troubleOf(err) == away {
			return 0, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
		}
		return 0, c.explain(err)
	}
	return int(n), nil
}

package kv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
)

// Dump reads in one REPEATABLE READ transaction.
func (p *pgStore) Dump(ctx context.Context, fn func(Record) error) error {
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
func (p *pgStore) Load(ctx context.Context, next func() (Record, error)) (int, error) {
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
	// The version comes with the rows, or is none.
	if _, err := t.conn.Exec(ctx, deleteOne, []byte(versionKey)); err != nil {
		return 0, c.explain(err)
	}
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

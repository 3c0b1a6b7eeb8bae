package kv

import (
	"context"
	"errors"
	"testing"
	"time"

	"porchlight/control/kv/pgtest"
)

// An Update that reads what it needs with GetAll and writes is two round trips:
// one begins it and reads, one writes and commits. A ViewOf is one.
func TestPostgresRoundTrips(t *testing.T) {
	t.Parallel()
	c, through := newCutter(t, pgtest.Database(t))
	s, err := Open(context.Background(), through+"&pool_max_conns=1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	ctx := context.Background()
	rotate := func() error {
		return s.Update(ctx, func(tx Tx) error {
			if _, err := tx.GetAll("grant", "client", "computer", "person"); err != nil {
				return err
			}
			for _, key := range []string{"grant", "person"} { // known by now
				if _, err := tx.Get(key); err != nil && !errors.Is(err, ErrNotFound) {
					return err
				}
			}
			return tx.Put("grant", []byte("x"), 90*24*time.Hour)
		})
	}
	for _, tt := range []struct {
		what string
		run  func() error
		want int64
	}{
		{"read all, write", rotate, 2},
		{"write only", func() error { return s.Update(ctx, func(tx Tx) error { return tx.Put("k", nil, 0) }) }, 1},
		{"read what is known before", func() error {
			rows := Rows{Keys: []string{"grant"}, Prefixes: []string{"k"}, Indexes: []Index{{"k", "grant"}}}
			return s.ViewOf(ctx, rows, func(tx Tx) error {
				_, err := tx.Scan("k", "", 9)
				_, missing := tx.Get("grant")
				return errors.Join(err, missing)
			})
		}, 1},
		{"read twice, write", func() error {
			return s.Update(ctx, func(tx Tx) error {
				_, err := tx.Get("k")
				if err == nil {
					_, err = tx.Scan("k", "", 1)
				}
				return errors.Join(err, tx.Put("k", nil, 0))
			})
		}, 3},
	} {
		if err := tt.run(); err != nil { // prepares every statement
			t.Fatal(err)
		}
		before := c.trips.Load()
		for range 10 {
			if err := tt.run(); err != nil {
				t.Fatal(err)
			}
		}
		if got := c.trips.Load() - before; got != 10*tt.want {
			t.Errorf("%s: %d round trips in ten, want %d", tt.what, got, 10*tt.want)
		}
	}
}

package kv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	bolt "go.etcd.io/bbolt"

	"porchlight/internal/boltfile"
	"porchlight/internal/durable"
)

// ErrNoStore is wrapped by Look where there is no store yet.
var ErrNoStore = errors.New("there is no store yet")

// Format says of rows which program they are for.
type Format struct {
	Rows  int // the migrations they have been through
	Knows int // and how many this program knows
	// Due are those that Open would run.
	Due []Migration
	// Migrating is who is at it now, or left it a moment ago; empty for nobody.
	Migrating string
}

// FormatKeys are the rows that FormatOf reads.
func FormatKeys() []string { return []string{versionKey, leaseKey} }

// FormatOf reads the format from the values of FormatKeys, nil for those that are not
// there. Unlike Open it takes what a newer version wrote.
func FormatOf(values [][]byte) (f Format, err error) {
	f.Knows = len(migrations)
	if f.Rows, err = readVersion(values[0]); err != nil {
		return f, err
	}
	f.Due = migrations[min(f.Rows, f.Knows):]
	if values[1] != nil {
		row, err := parseLease(values[1])
		if err != nil {
			return f, err
		}
		f.Migrating = row.By
	}
	return f, nil
}

// Look has fn read the store at a URL for Open, whichever version wrote it, and changes
// nothing there: it makes no table and no file, and brings nothing up to date.
func Look(ctx context.Context, url string, opts Options, fn func(Tx) error) error {
	if opts.Now == nil && !kindOf(url).shared {
		opts.Now = time.Now
	}
	return kindOf(url).look(ctx, url, opts, fn)
}

func lookBolt(_ context.Context, url string, opts Options, fn func(Tx) error) error {
	path := strings.TrimPrefix(url, "file:")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", path, ErrNoStore)
	}
	db, _, err := openReady(path, bolt.Options{Timeout: lockTimeout, ReadOnly: true}, func(db *boltfile.DB) error {
		return db.View(func(tx *boltfile.Tx) error {
			if tx.Bucket(bucketItems) == nil {
				return fmt.Errorf("%s: %w", path, ErrNoStore)
			}
			t := newBoltTx(tx, opts.Now())
			t.readOnly = true
			defer t.end()
			return fn(t)
		})
	})
	if err != nil {
		return err
	}
	return durable.Plain(db.Close())
}

func lookPostgres(ctx context.Context, url string, opts Options, fn func(Tx) error) error {
	p, cfg, err := connectPostgres(ctx, url, opts)
	if err != nil {
		return err
	}
	_, err = p.pool.Exec(ctx, "select 1 from kv limit 0")
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok && pe.Code == codeNoTable {
		err = fmt.Errorf("the database %q: %w", cfg.ConnConfig.Database, ErrNoStore)
	} else if err != nil {
		err = openFailure(cfg.ConnConfig, err)
	} else {
		err = p.View(ctx, fn)
	}
	return errors.Join(err, p.Close())
}

func lookMemory(context.Context, string, Options, func(Tx) error) error {
	return fmt.Errorf("memory: %w", ErrNoStore)
}

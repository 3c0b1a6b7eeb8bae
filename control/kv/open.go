package kv

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Options of Open; the zero value is fine.
type Options struct {
	// Now tells the time by which values expire; nil means this machine's, and for a
	// database that processes share the database's, see Clock.
	Now func() time.Time
	// ClockChanged, if set, is told when the database's clock, by which values expire,
	// turns out to be another time ahead of this machine's; behind where it is negative.
	ClockChanged func(was, is time.Duration)
	// machine stands in for this machine's clock in tests.
	machine func() time.Time
	// unsynced rows are gone with the machine.
	unsynced bool

	// Patience is how long a call waits for a database that went away before it
	// fails with ErrUnavailable; zero means 10 seconds.
	Patience time.Duration
	// Wait is how long Open waits for a database that cannot be reached, or is
	// starting or recovering; zero means that it does not.
	Wait time.Duration
	// Waiting, if set, is told why Open waits, and for how long: each time for a
	// database, and once (the cause wraps ErrMigrating) for each process that is
	// bringing the rows up to date.
	Waiting func(cause error, pause time.Duration)
}

// kind is one way to keep rows.
type kind struct {
	shared bool // several processes may have it open
	open   func(ctx context.Context, url string, opts Options) (Store, error)
	look   func(ctx context.Context, url string, opts Options, fn func(Tx) error) error
}

// kinds of stores by the scheme of their URLs.
var kinds = map[string]kind{
	"file":       {false, openBolt, lookBolt},
	"memory":     {false, openMemory, lookMemory},
	"postgres":   {true, openPostgres, lookPostgres},
	"postgresql": {true, openPostgres, lookPostgres},
}

// kindOf is the kind of store at a URL; what has no scheme of theirs is the path of a
// file.
func kindOf(url string) kind {
	scheme, _, _ := strings.Cut(url, ":")
	if k, ok := kinds[scheme]; ok {
		return k
	}
	return kinds["file"]
}

// Shared says of a URL for Open whether several processes may use that store at
// the same time.
func Shared(url string) bool { return kindOf(url).shared }

// Open opens the store at url, makes it where there is none, and brings the rows
// of an older version up to date; one that a newer version wrote is refused and
// left as it is. The url is one of
//
//	file:PATH, or PATH      a bbolt file, for this process alone
//	postgres://USER@HOST/DB a PostgreSQL database, see openPostgres
//	memory:                 rows that are gone when the store is closed
//
// The errors are sentences for the person who runs the program, without a password.
func Open(ctx context.Context, url string, opts Options) (Store, error) {
	if opts.Now == nil && !kindOf(url).shared {
		opts.Now = time.Now
	}
	s, err := kindOf(url).open(ctx, url, opts)
	if err != nil {
		return nil, err
	}
	if kindOf(url).shared {
		err = migrateAlone(ctx, s, migrations, usualLease, opts.Waiting)
	} else {
		err = migrate(ctx, s, migrations)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open the store: %w", err), s.Close())
	}
	return s, nil
}

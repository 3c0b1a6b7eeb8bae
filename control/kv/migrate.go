package kv

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// Migration is one step that brings the rows of an older version up to date.
type Migration struct {
	Format int    // the count once it is done
	About  string // what it does, as "the rows are counted"
	// Beside says that programs of before may go on using what it leaves, so that the
	// nodes of one store can be replaced one after another.
	Beside bool

	step func(Tx) error
}

// migrations run one after the other; a new one goes to the end, with the next number.
// They decode rows into types of their own, because those of the domain go on changing.
//
// A store counts those it has been through in the row versionKey. A program
// refuses a store that counts more than it knows. Programs from before there was
// a count do not look at it, so the first only adds: they open what it leaves.
var migrations = []Migration{
	{Format: 1, About: "the rows are given the number of their format", Beside: true, step: func(Tx) error { return nil }},
	// Programs of before would give tokens of a grant for one app for all of them.
	{Format: 2, About: "grants can be for single apps", step: func(Tx) error { return nil }},
	// Programs of before let in whom the operator has suspended, and take such fields off rows.
	{Format: 3, About: "accounts, computers and clients can be suspended", step: func(Tx) error { return nil }},
}

// versionKey holds how many migrations the rows have been through, in decimal.
// Rows without it are from before they were counted.
const versionKey = "schema"

// readVersion reads the value of versionKey, nil where there is none.
func readVersion(value []byte) (int, error) {
	if value == nil {
		return 0, nil
	}
	version, err := strconv.Atoi(string(value))
	if err != nil || version < 0 {
		return 0, fmt.Errorf("these rows are damaged: their format is %q", value)
	}
	return version, nil
}

// errNewer is wrapped where a newer version wrote the rows.
var errNewer = errors.New("a newer version of Porchlight wrote these rows")

// versionIn is readVersion, and refuses what this program, which knows that many
// migrations, must not touch.
func versionIn(value []byte, known int) (int, error) {
	version, err := readVersion(value)
	if err == nil && version > known {
		err = fmt.Errorf("%w (format %d, and this one knows %d). Run that version, or restore a backup made before it", errNewer, version, known)
	}
	return version, err
}

func versionOf(tx Tx, known int) (int, error) {
	value, err := tx.Get(versionKey)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return 0, err
	}
	return versionIn(value, known)
}

// migrate runs the steps that the store has not been through, all of them in one
// transaction: should several processes do so at once, all but one find it done.
func migrate(ctx context.Context, s Store, steps []Migration) error {
	due, err := needsMigration(ctx, s, steps)
	if err != nil || !due {
		return err
	}
	return s.Update(ctx, func(tx Tx) error {
		version, err := versionOf(tx, len(steps))
		if err != nil || version == len(steps) {
			return err
		}
		for i, m := range steps[version:] {
			if err := m.step(tx); err != nil {
				return fmt.Errorf("cannot bring the rows to format %d: %w", version+i+1, err)
			}
		}
		return tx.Put(versionKey, strconv.AppendInt(nil, int64(len(steps)), 10), 0)
	})
}

func needsMigration(ctx context.Context, s Store, steps []Migration) (due bool, err error) {
	err = s.View(ctx, func(tx Tx) error {
		version, err := versionOf(tx, len(steps))
		due = version < len(steps)
		return err
	})
	return due && err == nil, err
}

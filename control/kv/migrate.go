package kv

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// migrations bring the rows of an older version up to date, one after the other;
// a new one goes to the end. They decode rows into types of their own, because
// those of the domain go on changing.
//
// A store counts those it has been through in the row versionKey. A program
// refuses a store that counts more than it knows. Programs from before there was
// a count do not look at it, so the first only adds: they open what it leaves.
var migrations = []func(Tx) error{
	func(Tx) error { return nil }, // 1: the count itself
}

// versionKey holds how many migrations the rows have been through, in decimal.
// Rows without it are from before they were counted.
const versionKey = "schema"

// versionIn reads the value of versionKey, nil where there is none, and refuses
// what this program, which knows that many migrations, must not touch.
func versionIn(value []byte, known int) (int, error) {
	if value == nil {
		return 0, nil
	}
	version, err := strconv.Atoi(string(value))
	switch {
	case err != nil || version < 0:
		return 0, fmt.Errorf("these rows are damaged: their format is %q", value)
	case version > known:
		return 0, fmt.Errorf("a newer version of Porchlight wrote these rows (format %d, and this one knows %d). Run that version, or restore a backup made before it", version, known)
	}
	return version, nil
}

func versionOf(tx Tx, known int) (int, error) {
	value, err := tx.Get(versionKey)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return 0, err
	}
	return versionIn(value, known)
}

// migrate runs the steps that the store has not been through, all of them in one
// transaction. Of several processes that begin at once one does.
func migrate(ctx context.Context, s Store, steps []func(Tx) error) error {
	var version int
	look := func(tx Tx) (err error) {
		version, err = versionOf(tx, len(steps))
		return err
	}
	if err := s.View(ctx, look); err != nil || version == len(steps) {
		return err
	}
	return s.Update(ctx, func(tx Tx) error {
		if err := look(tx); err != nil || version == len(steps) {
			return err
		}
		for i, step := range steps[version:] {
			if err := step(tx); err != nil {
				return fmt.Errorf("cannot bring the rows to format %d: %w", version+i+1, err)
			}
		}
		return tx.Put(versionKey, strconv.AppendInt(nil, int64(len(steps)), 10), 0)
	})
}

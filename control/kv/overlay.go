package kv

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"
)

// overlay is what one run of a function has written so far, over what the store
// holds: the function's own reads see it, and the commit takes it from here.
type overlay struct {
	now      time.Time // one instant for the whole run
	readOnly bool
	returned bool // its function has returned
	writes   map[string]write
	size     int // of the writes, in bytes
}

// write is what a transaction did to one key.
type write struct {
	value   []byte
	expires time.Time // zero: never
	deleted bool
}

// end makes every later call fail: what is beneath may belong to somebody else by
// then.
func (o *overlay) end() { o.returned = true }

func (o *overlay) mayWrite() error {
	switch {
	case o.returned:
		return errTxOver
	case o.readOnly:
		return ErrReadOnly
	}
	return nil
}

func (o *overlay) mayScan(limit int) error {
	if o.returned {
		return errTxOver
	}
	return checkLimit(limit)
}

// Put implements Tx.
func (o *overlay) Put(key string, value []byte, ttl time.Duration) error {
	if err := o.mayWrite(); err != nil {
		return err
	}
	if err := checkPut(key, value, ttl); err != nil {
		return err
	}
	o.note(key, write{value: clone(value), expires: expiryOf(o.now, ttl)})
	return nil
}

// Delete implements Tx.
func (o *overlay) Delete(key string) error {
	if err := o.mayWrite(); err != nil {
		return err
	}
	if key == "" || len(key) > MaxKey {
		return nil // never stored
	}
	o.note(key, write{deleted: true})
	return nil
}

func (o *overlay) note(key string, w write) {
	if o.writes == nil {
		o.writes = make(map[string]write)
	}
	o.writes[key] = w
	o.size += deadlineLen + len(key) + len(w.value)
}

// own answers Get where what is stored does not matter (decided): for a key this
// run has written, and once it is over. What it put has not expired: its time to
// live began with this run, for which time stands still.
func (o *overlay) own(key string) (value []byte, decided bool, err error) {
	w, written := o.writes[key]
	switch {
	case o.returned:
		return nil, true, errTxOver
	case !written:
		return nil, false, nil
	case w.deleted:
		return nil, true, ErrNotFound
	}
	return clone(w.value), true, nil
}

// under are the written keys of a Scan, in order.
func (o *overlay) under(prefix, after string) []string {
	var keys []string
	for key := range o.writes {
		if key > after && strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// merge is the answer of a Scan, from two ordered runs: the written keys, as under
// returns them, and what is stored, which next returns one by one until more is
// false. Where both have a key the written one counts.
func (o *overlay) merge(written []string, limit int, next func() (item Item, more bool, err error)) ([]Item, error) {
	var items []Item
	stored, more, err := next()
	for err == nil && len(items) < limit && (more || len(written) > 0) {
		if more && (len(written) == 0 || stored.Key < written[0]) {
			items = append(items, stored)
			stored, more, err = next()
			continue
		}
		key := written[0]
		written = written[1:]
		if more && stored.Key == key {
			stored, more, err = next()
		}
		if w := o.writes[key]; !w.deleted {
			items = append(items, Item{Key: key, Value: clone(w.value)})
		}
	}
	if err != nil {
		return nil, err
	}
	return items, nil
}

// load is Load, by the tx whose overlay this is.
func (o *overlay) load(ctx context.Context, tx Tx, next func() (Record, error)) (n int, err error) {
	there, err := tx.Scan("", "", 2)
	if err != nil {
		return 0, err
	}
	if slices.ContainsFunc(there, func(i Item) bool { return i.Key != versionKey }) {
		return 0, ErrNotEmpty
	}
	o.note(versionKey, write{deleted: true}) // it comes with the rows, or is none
	next = checked(ctx, next)
	for {
		r, err := next()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
		o.note(r.Key, write{value: clone(r.Value), expires: r.Expires})
		n++
	}
}

// getEach is GetAll by one Get for each key.
func getEach(tx Tx, keys []string) ([][]byte, error) {
	if err := checkKeys(keys); err != nil {
		return nil, err
	}
	values := make([][]byte, len(keys))
	for i, key := range keys {
		value, err := tx.Get(key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		values[i] = value
	}
	return values, nil
}

// clone never answers nil, so that a stored empty value reads as empty.
func clone(b []byte) []byte { return append([]byte{}, b...) }

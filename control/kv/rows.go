package kv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Rows names the rows that a ViewOf reads, all together. The zero value names none.
type Rows struct {
	Keys     []string // at most MaxRows
	Prefixes []string // everything whose key begins with one of these; none is empty
	First    []string // the first row alone that begins with one of these; none is empty
	Indexes  []Index
}

// Index names the rows below a prefix, and for each of them another row: the one at
// Row followed by what follows Prefix in the key. Neither is empty.
type Index struct{ Prefix, Row string }

// NotReadError is returned within a ViewOf for what it was not told to read.
type NotReadError struct{ Missing Rows }

func (e *NotReadError) Error() string {
	return fmt.Sprintf("kv: not among the rows to be read: keys %q, prefixes %q", e.Missing.Keys, e.Missing.Prefixes)
}

// With is r and more.
func (r Rows) With(more Rows) Rows {
	return Rows{
		Keys:     append(slices.Clone(r.Keys), more.Keys...),
		Prefixes: append(slices.Clone(r.Prefixes), more.Prefixes...),
		First:    append(slices.Clone(r.First), more.First...),
		Indexes:  append(slices.Clone(r.Indexes), more.Indexes...),
	}
}

func (r Rows) check() error {
	for _, index := range r.Indexes {
		if index.Prefix == "" || index.Row == "" {
			return errors.New("kv: an index without a prefix, or without its rows")
		}
	}
	if slices.Contains(r.Prefixes, "") || slices.Contains(r.First, "") {
		return errors.New("kv: everything cannot be read at once")
	}
	if len(r.Keys) > MaxRows {
		return fmt.Errorf("kv: %d keys to be read together are too many (at most %d)", len(r.Keys), MaxRows)
	}
	return nil
}

// has says whether the row at key is among r, whose keys are sorted, given those that are
// there.
func (r Rows) has(key string, there func(key string) bool) bool {
	if _, named := slices.BinarySearch(r.Keys, key); named || r.hasAll(key) {
		return true
	}
	return slices.ContainsFunc(r.Indexes, func(index Index) bool {
		rest, ok := strings.CutPrefix(key, index.Row)
		return ok && there(index.Prefix+rest)
	})
}

// hasAll says whether everything that begins with prefix is among r.
func (r Rows) hasAll(prefix string) bool {
	return slices.ContainsFunc(r.Prefixes, func(p string) bool { return strings.HasPrefix(prefix, p) }) ||
		slices.ContainsFunc(r.Indexes, func(i Index) bool { return strings.HasPrefix(prefix, i.Prefix) })
}

// viewOf is ViewOf where the rows are at hand.
func viewOf(ctx context.Context, s Store, rows Rows, fn func(Tx) error) error {
	if err := rows.check(); err != nil {
		return err
	}
	var items []Item
	err := s.View(ctx, func(tx Tx) (err error) {
		items, err = rows.read(tx)
		return err
	})
	if err != nil {
		return err
	}
	return newRowsTx(rows, items).run(fn)
}

// putAll is PutAll where the rows are at hand.
func putAll(ctx context.Context, s Store, ttl time.Duration, rows []Item) error {
	if err := checkAll(rows, ttl); err != nil {
		return err
	}
	return s.Update(ctx, func(tx Tx) error {
		for _, row := range rows {
			if err := tx.Put(row.Key, row.Value, ttl); err != nil {
				return err
			}
		}
		return nil
	})
}

// read collects the rows of r from a transaction that has them at hand, a page of a
// prefix at a time.
func (r Rows) read(tx Tx) (items []Item, err error) {
	get := func(keys ...string) error {
		values, err := getEach(tx, keys)
		for i, value := range values {
			if value != nil {
				items = append(items, Item{keys[i], value})
			}
		}
		return err
	}
	for some := range slices.Chunk(r.Keys, MaxKeys) {
		if err := get(some...); err != nil {
			return nil, err
		}
	}
	for _, prefix := range r.Prefixes {
		err := below(tx, prefix, func(item Item) error {
			items = append(items, item)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, prefix := range r.First {
		first, err := tx.Scan(prefix, "", 1)
		if err != nil {
			return nil, err
		}
		items = append(items, first...)
	}
	for _, index := range r.Indexes {
		err := below(tx, index.Prefix, func(item Item) error {
			items = append(items, item)
			return get(index.Row + item.Key[len(index.Prefix):])
		})
		if err != nil {
			return nil, err
		}
	}
	return items, nil
}

// below calls fn for every row below a prefix.
func below(tx Tx, prefix string, fn func(Item) error) error {
	after := ""
	for {
		items, err := tx.Scan(prefix, after, MaxKeys)
		if err != nil {
			return err
		}
		for _, item := range items {
			if err := fn(item); err != nil {
				return err
			}
			after = item.Key
		}
		if len(items) < MaxKeys {
			return nil
		}
	}
}

// rowsTx is the transaction of a ViewOf: what was read, in memory.
type rowsTx struct {
	overlay        // it is read-only, so there are no writes
	rows    Rows   // its keys in order
	items   []Item // in key order, each once
}

// newRowsTx takes items over, in any order.
func newRowsTx(rows Rows, items []Item) *rowsTx {
	slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.Key, b.Key) })
	items = slices.CompactFunc(items, func(a, b Item) bool { return a.Key == b.Key })
	rows.Keys = slices.Sorted(slices.Values(rows.Keys))
	return &rowsTx{overlay: overlay{readOnly: true}, rows: rows, items: items}
}

// run is what every ViewOf does with what it has read.
func (t *rowsTx) run(fn func(Tx) error) error {
	defer t.end()
	return fn(t)
}

func (t *rowsTx) find(key string) (i int, found bool) {
	return slices.BinarySearchFunc(t.items, key, func(item Item, key string) int { return strings.Compare(item.Key, key) })
}

// Get implements Tx.
func (t *rowsTx) Get(key string) ([]byte, error) {
	values, err := t.GetAll(key)
	switch {
	case err != nil:
		return nil, err
	case values[0] == nil:
		return nil, ErrNotFound
	}
	return values[0], nil
}

// GetAll implements Tx.
func (t *rowsTx) GetAll(keys ...string) ([][]byte, error) {
	if t.returned {
		return nil, errTxOver
	}
	if len(keys) > MaxKeys && len(keys) > len(t.rows.Keys) { // what was named can be had together
		return nil, checkKeys(keys)
	}
	values := make([][]byte, len(keys))
	var missing []string
	for i, key := range keys {
		at, found := t.find(key)
		if found {
			values[i] = clone(t.items[at].Value)
		} else if key != "" && len(key) <= MaxKey && !t.rows.has(key, t.there) {
			missing = append(missing, key)
		}
	}
	if len(missing) > 0 {
		return nil, &NotReadError{Rows{Keys: missing}}
	}
	return values, nil
}

func (t *rowsTx) there(key string) bool {
	_, found := t.find(key)
	return found
}

// Scan implements Tx.
func (t *rowsTx) Scan(prefix, after string, limit int) ([]Item, error) {
	if err := t.mayScan(limit); err != nil {
		return nil, err
	}
	first := after == "" && limit == 1 && slices.Contains(t.rows.First, prefix)
	if !first && !t.rows.hasAll(prefix) {
		return nil, &NotReadError{Rows{Prefixes: []string{prefix}}}
	}
	i, found := t.find(max(prefix, after))
	if found && t.items[i].Key == after {
		i++
	}
	var out []Item
	for ; i < len(t.items) && len(out) < limit && strings.HasPrefix(t.items[i].Key, prefix); i++ {
		out = append(out, Item{t.items[i].Key, clone(t.items[i].Value)})
	}
	return out, nil
}

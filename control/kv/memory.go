package kv

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// memStore keeps a Store in memory, for tests of what is above it. A transaction
// works on a slice of rows that nobody changes; a commit puts a new one in its
// place.
type memStore struct {
	now    func() time.Time
	closed atomic.Bool
	mu     sync.Mutex               // held while something is written
	rows   atomic.Pointer[[]Record] // in key order; replaced under mu
}

func openMemory(_ context.Context, _ string, opts Options) (Store, error) {
	m := &memStore{now: opts.Now}
	m.rows.Store(&[]Record{})
	return m, nil
}

// begin is a transaction on the rows as they are.
func (m *memStore) begin(ctx context.Context) (*memTx, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if m.closed.Load() {
		return nil, ErrClosed
	}
	return &memTx{overlay: overlay{now: m.now()}, rows: *m.rows.Load()}, nil
}

// View implements Store.
func (m *memStore) View(ctx context.Context, fn func(Tx) error) error {
	t, err := m.begin(ctx)
	if err != nil {
		return err
	}
	defer t.end()
	t.readOnly = true
	return fn(t)
}

// ViewOf implements Store.
func (m *memStore) ViewOf(ctx context.Context, rows Rows, fn func(Tx) error) error {
	return viewOf(ctx, m, rows, fn)
}

// PutAll implements Store.
func (m *memStore) PutAll(ctx context.Context, ttl time.Duration, rows ...Item) error {
	return putAll(ctx, m, ttl, rows)
}

// Update implements Store.
func (m *memStore) Update(ctx context.Context, fn func(Tx) error) error {
	return m.do(ctx, func(t *memTx) error { return fn(t) })
}

func (m *memStore) do(ctx context.Context, fn func(*memTx) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.begin(ctx)
	if err != nil {
		return err
	}
	defer t.end()
	if err := fn(t); err != nil {
		return err
	}
	rows := t.merged()
	m.rows.Store(&rows)
	return nil
}

// Sweep implements Store.
func (m *memStore) Sweep(ctx context.Context, limit int) (swept int, err error) {
	if err := checkLimit(limit); err != nil {
		return 0, err
	}
	err = m.do(ctx, func(t *memTx) error {
		for _, r := range t.rows {
			if t.expired(r) && swept < limit {
				t.note(r.Key, write{deleted: true})
				swept++
			}
		}
		return nil
	})
	return swept, err
}

// Dump implements Store.
func (m *memStore) Dump(ctx context.Context, fn func(Record) error) error {
	return m.View(ctx, func(tx Tx) error {
		t := tx.(*memTx)
		for _, r := range t.rows {
			if t.expired(r) {
				continue
			}
			r.Value = clone(r.Value)
			if err := fn(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// Load implements Store.
func (m *memStore) Load(ctx context.Context, next func() (Record, error)) (n int, err error) {
	err = m.do(ctx, func(t *memTx) (err error) {
		n, err = t.load(ctx, t, next)
		return err
	})
	return n, err
}

// Close implements Store.
func (m *memStore) Close() error {
	m.closed.Store(true)
	return nil
}

type memTx struct {
	overlay
	rows []Record
}

func (t *memTx) expired(r Record) bool { return !r.Expires.IsZero() && !r.Expires.After(t.now) }

func find(rows []Record, key string) (i int, found bool) {
	return slices.BinarySearchFunc(rows, key, func(r Record, key string) int { return strings.Compare(r.Key, key) })
}

// Get implements Tx.
func (t *memTx) Get(key string) ([]byte, error) {
	if value, decided, err := t.own(key); decided {
		return value, err
	}
	i, found := find(t.rows, key)
	if !found || t.expired(t.rows[i]) {
		return nil, ErrNotFound
	}
	return clone(t.rows[i].Value), nil
}

// GetAll implements Tx.
func (t *memTx) GetAll(keys ...string) ([][]byte, error) { return getEach(t, keys) }

// Scan implements Tx.
func (t *memTx) Scan(prefix, after string, limit int) ([]Item, error) {
	if err := t.mayScan(limit); err != nil {
		return nil, err
	}
	i, found := find(t.rows, max(prefix, after))
	if found && t.rows[i].Key == after {
		i++
	}
	return t.merge(t.under(prefix, after), limit, func() (Item, bool, error) {
		for ; i < len(t.rows) && strings.HasPrefix(t.rows[i].Key, prefix); i++ {
			if r := t.rows[i]; !t.expired(r) {
				i++
				return Item{Key: r.Key, Value: clone(r.Value)}, true, nil
			}
		}
		return Item{}, false, nil
	})
}

// merged are the rows with this run's writes in them.
func (t *memTx) merged() []Record {
	keys, rest := t.under("", ""), t.rows
	rows := make([]Record, 0, len(rest)+len(keys))
	for _, key := range keys {
		i, found := find(rest, key)
		rows = append(rows, rest[:i]...)
		if rest = rest[i:]; found {
			rest = rest[1:]
		}
		if w := t.writes[key]; !w.deleted {
			rows = append(rows, Record{Key: key, Value: w.value, Expires: w.expires})
		}
	}
	return append(rows, rest...)
}

// Package kvtest is what every kind of kv.Store has to pass. Its own test calls Run
// with a function that opens an empty store; what it does beyond the contract
// (durability, locks, retries) is tested beside it. Telling is for tests of what stands
// on a store.
package kvtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/control/kv"
)

// Run runs the suite. open opens an empty store that tells the time by now; the
// suite closes it.
func Run(t *testing.T, open func(t *testing.T, now func() time.Time) kv.Store) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, *fixture)
	}{
		{"put, get, delete", putGetDelete},
		{"values are copies", copies},
		{"many keys at once", many},
		{"many writes at once", manyWrites},
		{"rows put together", putTogether},
		{"a failing update keeps nothing", rollback},
		{"a panicking update keeps nothing", panics},
		{"a transaction reads its own writes", readYourWrites},
		{"a transaction is over when its function returns", over},
		{"views are read-only", readOnly},
		{"views are snapshots", snapshots},
		{"rows known before", rowsKnown},
		{"rows known before are of one moment", rowsOfOneMoment},
		{"order and paging", ordering},
		{"limits", limits},
		{"expiry", expiry},
		{"a later put decides the expiry", expiryReplaced},
		{"expiry far away", farExpiry},
		{"sweep", sweep},
		{"a context that is over", contexts},
		{"a closed store", closed},
		{"no increment is lost", increments},
		{"one of many consumes a token", consume},
		{"neighbours of a failure are kept", neighbours},
		{"no write skew", writeSkew},
		{"no phantom", phantom},
		{"any sequence matches a model", model},
		{"what is dumped can be loaded", dumpAndLoad},
		{"a dump is of one moment", dumpBesideWrites},
		{"a failing load keeps nothing", failingLoad},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := &fixture{}
			f.nanos.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano())
			f.Store = open(t, f.now)
			t.Cleanup(func() { _ = f.Close() })
			f.update(t, func(tx kv.Tx) error { return tx.Delete(versionKey) })
			f.open = func(t *testing.T) kv.Store {
				s := open(t, f.now)
				t.Cleanup(func() { _ = s.Close() })
				return s
			}
			c.run(t, f)
		})
	}
}

// versionKey is the row that Open writes. The suite deletes it, to know every row
// there is; a Load replaces it.
const versionKey = "schema"

// fixture is a store and its clock.
type fixture struct {
	kv.Store
	nanos atomic.Int64
	open  func(t *testing.T) kv.Store // another one, empty, with the same clock
}

func (f *fixture) now() time.Time          { return time.Unix(0, f.nanos.Load()) }
func (f *fixture) advance(d time.Duration) { f.nanos.Add(int64(d)) }

func (f *fixture) update(t *testing.T, fn func(kv.Tx) error) {
	t.Helper()
	if err := f.Update(context.Background(), fn); err != nil {
		t.Fatalf("Update: %v", err)
	}
}

func (f *fixture) put(t *testing.T, key, value string, ttl time.Duration) {
	t.Helper()
	f.update(t, func(tx kv.Tx) error { return tx.Put(key, []byte(value), ttl) })
}

// absent is what get answers for a key that is not there.
const absent = "(absent)"

func get(tx kv.Tx, key string) string {
	value, err := tx.Get(key)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return absent
	case err != nil:
		return "(" + err.Error() + ")"
	}
	return string(value)
}

func (f *fixture) get(t *testing.T, key string) (value string) {
	t.Helper()
	f.view(t, func(tx kv.Tx) { value = get(tx, key) })
	return value
}

func (f *fixture) view(t *testing.T, fn func(kv.Tx)) {
	t.Helper()
	if err := f.View(context.Background(), func(tx kv.Tx) error { fn(tx); return nil }); err != nil {
		t.Fatalf("View: %v", err)
	}
}

// scan answers "key=value" strings, so that whole answers can be compared.
func scan(tx kv.Tx, prefix, after string, limit int) []string {
	items, err := tx.Scan(prefix, after, limit)
	if err != nil {
		return []string{"(" + err.Error() + ")"}
	}
	var out []string
	for _, i := range items {
		out = append(out, i.Key+"="+string(i.Value))
	}
	return out
}

func (f *fixture) scan(t *testing.T, prefix, after string, limit int) (out []string) {
	t.Helper()
	f.view(t, func(tx kv.Tx) { out = scan(tx, prefix, after, limit) })
	return out
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func equalAll(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// each runs fn n times side by side and returns the errors.
func each(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	done := make(chan struct{})
	for i := range n {
		go func() {
			<-start
			errs[i] = fn(i)
			done <- struct{}{}
		}()
	}
	close(start)
	for range n {
		<-done
	}
	return errs
}

func key(format string, args ...any) string { return fmt.Sprintf(format, args...) }

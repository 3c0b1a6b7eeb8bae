package kvtest

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/control/kv"
	"porchlight/test/programs"
)

func dump(t *testing.T, s kv.Store) (records []kv.Record) {
	t.Helper()
	err := s.Dump(context.Background(), func(r kv.Record) error {
		records = append(records, r)
		return nil
	})
	if err != nil {
		t.Fatalf("Dump: %v", err)
	}
	return records
}

// feed returns records one by one and then err.
func feed(records []kv.Record, err error) func() (kv.Record, error) {
	return func() (kv.Record, error) {
		if len(records) == 0 {
			return kv.Record{}, err
		}
		r := records[0]
		records = records[1:]
		return r, nil
	}
}

func words(records []kv.Record, now time.Time) (out []string) {
	for _, r := range records {
		left := "stays"
		if !r.Expires.IsZero() {
			left = r.Expires.Sub(now).String()
		}
		out = append(out, r.Key+"="+string(r.Value)+" "+left)
	}
	return out
}

func dumpAndLoad(t *testing.T, f *fixture) {
	ctx := context.Background()
	binary := "\x00\xff/\n\xc3\x28"
	f.put(t, "stays", "1", 0)
	f.put(t, "minute", "", time.Minute)
	f.put(t, "hour", "3", time.Hour)
	f.put(t, binary, binary, 0)
	f.advance(30 * time.Minute)
	before := dump(t, f.Store)
	want := []string{binary + "=" + binary + " stays", "hour=3 30m0s", "stays=1 stays"}
	equalAll(t, "what is dumped", words(before, f.now()), want...)

	if _, err := f.Load(ctx, feed(before, io.EOF)); !errors.Is(err, kv.ErrNotEmpty) {
		t.Errorf("Load into a store that is not empty: %v", err)
	}
	equalAll(t, "afterwards", words(dump(t, f.Store), f.now()), want...)

	other := &fixture{Store: f.open(t)}
	other.nanos.Store(f.nanos.Load())
	n, err := other.Load(ctx, feed(before, io.EOF))
	programs.Must(t, err)
	equal(t, "loaded", n, 3)
	equalAll(t, "what is loaded", words(dump(t, other.Store), f.now()), want...)
	equalAll(t, "scanned", other.scan(t, "", "", 10), binary+"="+binary, "hour=3", "stays=1")

	// What is loaded expires and is swept as if it had been put.
	f.advance(time.Hour)
	equal(t, "get after the hour", other.get(t, "hour"), absent)
	if n, err = other.Sweep(ctx, 10); err != nil {
		t.Fatal(err)
	}
	equal(t, "swept", n, 1)
}

func dumpBesideWrites(t *testing.T, f *fixture) {
	const rows = 500
	put := func(value string) {
		f.update(t, func(tx kv.Tx) error {
			for i := range rows {
				if err := tx.Put(key("%04d", i), []byte(value), 0); err != nil {
					return err
				}
			}
			return nil
		})
	}
	put("old")
	n := 0
	err := f.Dump(context.Background(), func(r kv.Record) error {
		if n++; n == 1 {
			written := make(chan struct{})
			go func() { defer close(written); put("new") }()
			<-written
		}
		if string(r.Value) != "old" {
			t.Errorf("%s is %s", r.Key, r.Value)
		}
		return nil
	})
	programs.Must(t, err)
	equal(t, "dumped", n, rows)
	equal(t, "read", f.get(t, "0499"), "new")
	refusal := errors.New("no")
	if err := f.Dump(context.Background(), func(kv.Record) error { return refusal }); err != refusal {
		t.Errorf("Dump: %v, want its function's error unchanged", err)
	}
}

func failingLoad(t *testing.T, f *fixture) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	some := []kv.Record{{Key: "a", Value: []byte("1")}, {Key: "b", Value: []byte("2")}}
	refusal := errors.New("no")
	if _, err := f.Load(ctx, feed(some, refusal)); err != refusal {
		t.Errorf("Load: %v, want next's error unchanged", err)
	}
	for what, last := range map[string]kv.Record{
		"a key twice":       {Key: "b"},
		"a key that falls":  {Key: "aa"},
		"the empty key":     {},
		"a key too long":    {Key: strings.Repeat("k", kv.MaxKey+1)},
		"a value too large": {Key: "c", Value: make([]byte, kv.MaxValue+1)},
		"a newer version's": {Key: versionKey, Value: []byte("1000")},
	} {
		if _, err := f.Load(ctx, feed(append(slices.Clone(some), last), io.EOF)); err == nil {
			t.Errorf("%s was loaded", what)
		}
	}
	over, stop := context.WithCancel(ctx)
	calls := 0
	if _, err := f.Load(over, func() (kv.Record, error) {
		if calls++; calls == 2 {
			stop()
		}
		return kv.Record{Key: key("%d", calls)}, nil
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("Load whose context ended: %v", err)
	}
	equalAll(t, "after loads that failed", f.scan(t, "", "", 10))
	if n, err := f.Load(ctx, feed(some, io.EOF)); err != nil || n != 2 {
		t.Errorf("Load: %d, %v", n, err)
	}
	equalAll(t, "after one that did not", f.scan(t, "", "", 10), "a=1", "b=2")
}

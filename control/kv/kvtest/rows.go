package kvtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"porchlight/control/kv"
	"porchlight/test/programs"
)

func rowsKnown(t *testing.T, f *fixture) {
	f.update(t, func(tx kv.Tx) error {
		var errs []error
		for _, key := range []string{
			"a", "b", "of/1/", "of/1/x", "of/1/y", "of/10/x", "of/2/x", "row/x", "row/z", "rox",
			"byte/\xff", "byte/\xff\xff", "bytf",
		} {
			errs = append(errs, tx.Put(key, []byte("="+key), 0))
		}
		errs = append(errs, tx.Put("of/1/z", []byte("gone"), time.Minute), tx.Put("row/y", []byte("gone"), time.Minute))
		return errors.Join(errs...)
	})
	f.advance(time.Minute)
	rows := kv.Rows{
		Keys:     []string{"a", "nothing", "a", "row/x", ""},
		Prefixes: []string{"byte/\xff", "none/"},
		First:    []string{"row/", "nobody/"},
		Indexes:  []kv.Index{{Prefix: "of/1/", Row: "row/"}},
	}
	ran := 0
	var kept kv.Tx
	err := f.ViewOf(context.Background(), rows, func(tx kv.Tx) error {
		ran++
		kept = tx
		for key, want := range map[string]string{"a": "=a", "nothing": absent, "": absent, "row/x": "=row/x", "of/1/x": "=of/1/x", "of/1/z": absent, "none/x": absent} {
			equal(t, key, get(tx, key), want)
		}
		equal(t, "the expired row of an index", get(tx, "row/y"), absent)
		equalAll(t, "an index", scan(tx, "of/1/", "", 9), "of/1/==of/1/", "of/1/x==of/1/x", "of/1/y==of/1/y")
		equalAll(t, "below and after", scan(tx, "of/1/", "of/1/x", 9), "of/1/y==of/1/y")
		equalAll(t, "a page", scan(tx, "of/1/", "", 2), "of/1/==of/1/", "of/1/x==of/1/x")
		equalAll(t, "part of a prefix", scan(tx, "of/1/y", "", 2), "of/1/y==of/1/y")
		equalAll(t, "the last bytes", scan(tx, "byte/\xff", "", 9), "byte/\xff==byte/\xff", "byte/\xff\xff==byte/\xff\xff")
		equalAll(t, "nothing", scan(tx, "none/", "", 9))

		equalAll(t, "the first row", scan(tx, "row/", "", 1), "row/x==row/x")
		equalAll(t, "the first of none", scan(tx, "nobody/", "", 1))

		wantMissing(t, "what follows the first row", second(tx.Scan("row/", "row/x", 1)), kv.Rows{Prefixes: []string{"row/"}})
		wantMissing(t, "a key", second(tx.Get("b")), kv.Rows{Keys: []string{"b"}})
		wantMissing(t, "a row no index names", second(tx.Get("row/z")), kv.Rows{Keys: []string{"row/z"}})
		wantMissing(t, "many keys", second(tx.GetAll("a", "b", "c")), kv.Rows{Keys: []string{"b", "c"}})
		wantMissing(t, "a prefix", second(tx.Scan("of/", "", 9)), kv.Rows{Prefixes: []string{"of/"}})
		wantMissing(t, "the rows of an index", second(tx.Scan("row/", "", 9)), kv.Rows{Prefixes: []string{"row/"}})
		if err := tx.Put("a", nil, 0); !errors.Is(err, kv.ErrReadOnly) {
			t.Errorf("Put: %v", err)
		}
		items, _ := tx.Scan("byte/", "", 1)
		for _, item := range items {
			item.Value[0] = '!'
		}
		value, _ := tx.Get("a")
		value[0] = '!'
		equal(t, "a value that was a copy", get(tx, "a"), "=a")
		return nil
	})
	if err != nil || ran != 1 {
		t.Errorf("it ran %d times: %v", ran, err)
	}
	if _, err := kept.Get("a"); err == nil {
		t.Error("it is not over")
	}
	several := make([]string, kv.MaxRows) // more than a GetAll takes, all of which are read
	for i := range several {
		several[i] = fmt.Sprint("several", i)
	}
	several[kv.MaxRows-1] = "a"
	err = f.ViewOf(context.Background(), kv.Rows{Keys: several}, func(tx kv.Tx) error {
		values, err := tx.GetAll(several...)
		if err == nil && (values[0] != nil || string(values[kv.MaxRows-1]) != "=a") {
			t.Errorf("of many keys: %q, %q", values[0], values[kv.MaxRows-1])
		}
		return err
	})
	if err != nil {
		t.Errorf("many keys: %v", err)
	}
	mine := errors.New("mine")
	if err := f.ViewOf(context.Background(), rows, func(kv.Tx) error { return mine }); err != mine {
		t.Errorf("its error: %v", err)
	}
	for _, wrong := range []kv.Rows{
		{Prefixes: []string{""}},
		{First: []string{""}},
		{Indexes: []kv.Index{{Row: "a"}}},
		{Indexes: []kv.Index{{Prefix: "a"}}},
		{Keys: slices.Repeat([]string{"k"}, kv.MaxRows+1)},
	} {
		if f.ViewOf(context.Background(), wrong, func(kv.Tx) error { return nil }) == nil {
			t.Errorf("%+v is taken", wrong)
		}
	}
}

func wantMissing(t *testing.T, what string, err error, want kv.Rows) {
	t.Helper()
	missing, ok := errors.AsType[*kv.NotReadError](err)
	if !ok || !slices.Equal(missing.Missing.Keys, want.Keys) || !slices.Equal(missing.Missing.Prefixes, want.Prefixes) {
		t.Errorf("%s that was not read: %v", what, err)
	}
}

// What one ViewOf reads is of one moment: two rows that are always written together,
// one by its key and one below an index, are never seen apart.
func rowsOfOneMoment(t *testing.T, f *fixture) {
	ctx, stop := context.WithCancel(context.Background())
	written := make(chan error, 1)
	go func() {
		written <- func() error {
			for n := 0; ctx.Err() == nil; n++ {
				err := f.Update(context.Background(), func(tx kv.Tx) error {
					value := []byte(time.Duration(n).String())
					return errors.Join(tx.Put("one", value, 0), tx.Put("index/k", nil, 0), tx.Put("two/k", value, 0))
				})
				if err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	rows := kv.Rows{Keys: []string{"one"}, Indexes: []kv.Index{{Prefix: "index/", Row: "two/"}}}
	for seen := map[string]bool{}; len(seen) < 20 && !t.Failed(); {
		err := f.ViewOf(context.Background(), rows, func(tx kv.Tx) error {
			one, two := get(tx, "one"), absent
			if len(scan(tx, "index/", "", 1)) > 0 {
				two = get(tx, "two/k")
			}
			if one != two {
				t.Errorf("%s beside %s", one, two)
			}
			seen[one] = true
			return nil
		})
		programs.Must(t, err)
	}
	stop()
	if err := <-written; err != nil {
		t.Error(err)
	}
}

// putTogether puts rows without a transaction around them.
func putTogether(t *testing.T, f *fixture) {
	ctx := context.Background()
	f.put(t, "kept", "before", 0)
	rows := []kv.Item{{Key: "b", Value: []byte("1")}, {Key: "kept", Value: []byte("after")}, {Key: "a\xff"}, {Key: "b", Value: []byte("2")}}
	programs.Must(t, f.PutAll(ctx, time.Minute, rows...))
	rows[1].Value[0] = '!'
	f.view(t, func(tx kv.Tx) {
		equal(t, "the last of a key", get(tx, "b"), "2")
		equal(t, "one that was there", get(tx, "kept"), "after")
		equal(t, "an empty value", get(tx, "a\xff"), "")
	})
	for what, wrong := range map[string][]kv.Item{
		"too many":       slices.Repeat([]kv.Item{{Key: "k"}}, kv.MaxRows+1),
		"an empty key":   {{Key: "b", Value: []byte("3")}, {}},
		"a value so big": {{Key: "b", Value: []byte("3")}, {Key: "k", Value: make([]byte, kv.MaxValue+1)}},
	} {
		if f.PutAll(ctx, 0, wrong...) == nil {
			t.Errorf("%s is taken", what)
		}
	}
	if f.PutAll(ctx, -1, kv.Item{Key: "k"}) == nil {
		t.Error("a negative time to live is taken")
	}
	if err := f.PutAll(ctx, 0); err != nil {
		t.Errorf("no rows: %v", err)
	}
	f.advance(time.Minute)
	f.view(t, func(tx kv.Tx) {
		equal(t, "what is over", get(tx, "b"), absent)
		equal(t, "what was not taken", get(tx, "k"), absent)
	})
}

package kvtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"porchlight/control/kv"
)

func putGetDelete(t *testing.T, f *fixture) {
	equal(t, "a key never put", f.get(t, "a"), absent)
	f.put(t, "a", "1", 0)
	equal(t, "after put", f.get(t, "a"), "1")
	f.put(t, "a", "22", 0)
	equal(t, "after a second put", f.get(t, "a"), "22")
	f.put(t, "empty", "", 0)
	equal(t, "an empty value", f.get(t, "empty"), "")
	binary := "\x00\xff/\n\xc3\x28"
	f.put(t, binary, binary, 0)
	equal(t, "bytes that are no text", f.get(t, binary), binary)
	f.update(t, func(tx kv.Tx) error { return tx.Delete("a") })
	equal(t, "after delete", f.get(t, "a"), absent)
	f.update(t, func(tx kv.Tx) error { return tx.Delete("a") })
	f.put(t, "a", "3", 0)
	equal(t, "put again", f.get(t, "a"), "3")
}

// manyWrites puts and deletes more than are written one by one, of every kind.
func manyWrites(t *testing.T, f *fixture) {
	key := func(n int) string { return fmt.Sprintf("many/%03d\xff", n) }
	const keys = 60
	for n := range keys / 2 {
		f.put(t, key(2*n), "before", time.Minute)
	}
	f.update(t, func(tx kv.Tx) error {
		for n := range keys {
			value, ttl := []byte(fmt.Sprintf("\x00\xff%d", n)), time.Duration(0)
			switch n % 20 {
			case 3:
				value = nil
			case 4, 5:
				ttl = time.Hour
			case 19:
				if err := tx.Delete(key(n - 1)); err != nil {
					return err
				}
			}
			if err := tx.Put(key(n), value, ttl); err != nil {
				return err
			}
		}
		return nil
	})
	for _, hour := range []bool{false, true} {
		for n := range keys {
			want := fmt.Sprintf("\x00\xff%d", n)
			switch {
			case n%20 == 18, hour && (n%20 == 4 || n%20 == 5):
				want = absent
			case n%20 == 3:
				want = ""
			}
			equal(t, fmt.Sprint("key ", n, ", an hour later: ", hour), f.get(t, key(n)), want)
		}
		f.advance(time.Hour)
	}
}

func copies(t *testing.T, f *fixture) {
	value := []byte("mine")
	f.update(t, func(tx kv.Tx) error {
		value := append([]byte(nil), value...)
		if err := tx.Put("k", value, 0); err != nil {
			return err
		}
		copy(value, "XXXX")
		got, err := tx.Get("k")
		if err != nil {
			return err
		}
		copy(got, "YYYY")
		items, err := tx.Scan("k", "", 1)
		if err != nil {
			return err
		}
		copy(items[0].Value, "ZZZZ")
		return nil
	})
	var kept []byte
	f.view(t, func(tx kv.Tx) {
		got, _ := tx.Get("k")
		copy(got, "XXXX")
		items, _ := tx.Scan("k", "", 1)
		kept = items[0].Value
	})
	f.put(t, "k", "new.", 0)
	equal(t, "a value kept after its transaction", string(kept), "mine")
	equal(t, "the stored value", f.get(t, "k"), "new.")
}

func rollback(t *testing.T, f *fixture) {
	f.put(t, "kept", "1", 0)
	refusal := errors.New("no")
	err := f.Update(context.Background(), func(tx kv.Tx) error {
		for _, err := range []error{tx.Put("kept", []byte("2"), 0), tx.Put("new", []byte("2"), 0), tx.Delete("kept")} {
			if err != nil {
				return err
			}
		}
		return refusal
	})
	if err != refusal { // unchanged, so == and not errors.Is
		t.Errorf("Update: %v, want its function's error unchanged", err)
	}
	equalAll(t, "after a refused update", f.scan(t, "", "", 10), "kept=1")
	viewErr := f.View(context.Background(), func(kv.Tx) error { return refusal })
	if viewErr != refusal {
		t.Errorf("View: %v, want its function's error unchanged", viewErr)
	}
}

func panics(t *testing.T, f *fixture) {
	func() {
		defer func() {
			if p := recover(); p != "stop" {
				t.Errorf("the caller recovered %v", p)
			}
		}()
		_ = f.Update(context.Background(), func(tx kv.Tx) error {
			_ = tx.Put("half", []byte("1"), 0)
			panic("stop")
		})
		t.Error("Update swallowed a panic")
	}()
	// What t.FailNow does inside a transaction.
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = f.Update(context.Background(), func(tx kv.Tx) error {
			_ = tx.Put("half", []byte("1"), 0)
			runtime.Goexit()
			return nil
		})
	}()
	<-gone
	f.put(t, "after", "1", 0)
	equalAll(t, "after a panic", f.scan(t, "", "", 10), "after=1")
}

func readYourWrites(t *testing.T, f *fixture) {
	for _, k := range []string{"p/a", "p/c", "p/e", "q"} {
		f.put(t, k, "old", 0)
	}
	f.update(t, func(tx kv.Tx) error {
		for _, err := range []error{
			tx.Put("p/b", []byte("new"), 0), tx.Put("p/c", []byte("new"), 0), tx.Delete("p/e"),
			tx.Put("p/f", []byte("new"), time.Hour), tx.Put("p/g", []byte("new"), 0), tx.Delete("p/g"), tx.Delete("p/none"),
		} {
			if err != nil {
				return err
			}
		}
		equal(t, "get of an own put", get(tx, "p/b"), "new")
		equal(t, "get of an own delete", get(tx, "p/e"), absent)
		equal(t, "get of an untouched key", get(tx, "p/a"), "old")
		equalAll(t, "scan", scan(tx, "p/", "", 10), "p/a=old", "p/b=new", "p/c=new", "p/f=new")
		equalAll(t, "scan with a limit", scan(tx, "p/", "", 2), "p/a=old", "p/b=new")
		equalAll(t, "scan after an own key", scan(tx, "p/", "p/b", 2), "p/c=new", "p/f=new")
		equalAll(t, "scan after a deleted key", scan(tx, "p/", "p/e", 10), "p/f=new")
		equalAll(t, "scan of everything", scan(tx, "", "p/c", 10), "p/f=new", "q=old")
		return nil
	})
	equalAll(t, "afterwards", f.scan(t, "p/", "", 10), "p/a=old", "p/b=new", "p/c=new", "p/f=new")
}

func over(t *testing.T, f *fixture) {
	f.put(t, "k", "1", 0)
	var kept []kv.Tx
	f.update(t, func(tx kv.Tx) error { kept = append(kept, tx); return nil })
	f.view(t, func(tx kv.Tx) { kept = append(kept, tx) })
	for _, tx := range kept {
		if _, err := tx.Get("k"); err == nil || errors.Is(err, kv.ErrNotFound) {
			t.Errorf("Get after the end: %v", err)
		}
		if _, err := tx.Scan("", "", 1); err == nil {
			t.Error("Scan after the end worked")
		}
		if err := tx.Put("k", []byte("2"), 0); err == nil {
			t.Error("Put after the end worked")
		}
		if err := tx.Delete("k"); err == nil {
			t.Error("Delete after the end worked")
		}
	}
	equal(t, "the stored value", f.get(t, "k"), "1")
}

func readOnly(t *testing.T, f *fixture) {
	f.put(t, "k", "1", 0)
	f.view(t, func(tx kv.Tx) {
		if err := tx.Put("k", []byte("2"), 0); !errors.Is(err, kv.ErrReadOnly) {
			t.Errorf("Put in a view: %v", err)
		}
		if err := tx.Delete("k"); !errors.Is(err, kv.ErrReadOnly) {
			t.Errorf("Delete in a view: %v", err)
		}
		equal(t, "the view goes on", get(tx, "k"), "1")
	})
	equal(t, "the stored value", f.get(t, "k"), "1")
}

func snapshots(t *testing.T, f *fixture) {
	f.put(t, "a", "1", 0)
	f.put(t, "b", "1", 0)
	f.view(t, func(tx kv.Tx) {
		equal(t, "first read", get(tx, "a"), "1")
		// A function may not call its store, so another goroutine writes.
		written := make(chan error)
		go func() {
			written <- f.Update(context.Background(), func(tx kv.Tx) error {
				return errors.Join(tx.Put("a", []byte("2"), 0), tx.Delete("b"), tx.Put("c", []byte("2"), 0))
			})
		}()
		if err := <-written; err != nil {
			t.Error(err)
		}
		equalAll(t, "the view still reads", scan(tx, "", "", 10), "a=1", "b=1")
		equal(t, "and gets", get(tx, "c"), absent)
	})
	equalAll(t, "the next view reads", f.scan(t, "", "", 10), "a=2", "c=2")
}

func ordering(t *testing.T, f *fixture) {
	keys := []string{"\x00", "\x00\x00", "a", "a/", "a/1", "a/10", "a/2", "a/\xff", "a/\xff\xff", "a0", "b", "z\xff", "é", "\xff", "\xff\xff"}
	f.update(t, func(tx kv.Tx) error {
		for i := range keys { // in no order
			if err := tx.Put(keys[i*7%len(keys)], []byte("v"), 0); err != nil {
				return err
			}
		}
		return nil
	})
	all := func(keys []string) (out []string) {
		for _, k := range keys {
			out = append(out, k+"=v")
		}
		return out
	}
	equalAll(t, "everything", f.scan(t, "", "", 100), all(keys)...)
	for _, prefix := range []string{"", "a", "a/", "a/\xff", "\xff", "nothing"} {
		var want []string
		for _, k := range keys {
			if strings.HasPrefix(k, prefix) {
				want = append(want, k)
			}
		}
		for size := 1; size <= 4; size++ {
			var got []string
			after := ""
			for len(got) <= len(want) {
				page := f.scan(t, prefix, after, size)
				got = append(got, page...)
				if len(page) < size {
					break
				}
				after = strings.TrimSuffix(page[len(page)-1], "=v")
			}
			equalAll(t, key("prefix %q by pages of %d", prefix, size), got, all(want)...)
		}
	}
	equalAll(t, "after a key that is not there", f.scan(t, "a/", "a/15", 10), all([]string{"a/2", "a/\xff", "a/\xff\xff"})...)
	equalAll(t, "after a key below the prefix", f.scan(t, "b", "a", 10), "b=v")
	equalAll(t, "after a key above the prefix", f.scan(t, "a", "b", 10))
	equalAll(t, "after the last", f.scan(t, "", "\xff\xff", 10))
}

func limits(t *testing.T, f *fixture) {
	longKey, largeValue := strings.Repeat("k", kv.MaxKey), strings.Repeat("v", kv.MaxValue)
	f.update(t, func(tx kv.Tx) error {
		for what, err := range map[string]error{
			"an empty key":         tx.Put("", []byte("v"), 0),
			"a key too long":       tx.Put(longKey+"k", []byte("v"), 0),
			"a value too large":    tx.Put("k", []byte(largeValue+"v"), 0),
			"a negative ttl":       tx.Put("k", []byte("v"), -time.Second),
			"a scan without limit": second(tx.Scan("", "", 0)),
			"a negative limit":     second(tx.Scan("", "", -1)),
		} {
			if err == nil {
				t.Errorf("%s was taken", what)
			}
		}
		// A refusal does not end the transaction.
		return tx.Put(longKey, []byte(largeValue), 0)
	})
	equal(t, "the largest there is", f.get(t, longKey) == largeValue, true)
	equal(t, "a key too long to be there", f.get(t, longKey+"k"), absent)
	equal(t, "the empty key", f.get(t, ""), absent)
	f.update(t, func(tx kv.Tx) error { return errors.Join(tx.Delete(""), tx.Delete(longKey+"k")) })
	for _, limit := range []int{0, -1} {
		if _, err := f.Sweep(context.Background(), limit); err == nil {
			t.Errorf("a sweep with limit %d was taken", limit)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func many(t *testing.T, f *fixture) {
	f.put(t, "a", "1", 0)
	f.put(t, "b", "", 0)
	f.put(t, "gone", "x", time.Minute)
	f.put(t, "stays", "x", 0)
	f.advance(time.Hour)
	show := func(tx kv.Tx, keys ...string) string {
		values, err := tx.GetAll(keys...)
		if err != nil {
			return "(" + err.Error() + ")"
		}
		shown := make([]string, len(values))
		for i, v := range values {
			if shown[i] = absent; v != nil {
				shown[i] = string(v)
				copy(v, "?")
			}
		}
		return strings.Join(shown, ",")
	}
	tooLong, most := strings.Repeat("k", kv.MaxKey+1), make([]string, kv.MaxKeys)
	ask := func(tx kv.Tx) {
		equal(t, "in any order, twice, absent, expired, empty", show(tx, "stays", "b", "none", "a", "gone", "a"), "x,,"+absent+",1,"+absent+",1")
		equal(t, "once more", show(tx, "a"), "1")
		equal(t, "none", show(tx), "")
		equal(t, "keys that cannot be", show(tx, "", tooLong), absent+","+absent)
		if _, err := tx.GetAll(most...); err != nil {
			t.Errorf("as many as may be: %v", err)
		}
		if _, err := tx.GetAll(append(most, "one")...); err == nil {
			t.Error("one more than may be is taken")
		}
	}
	f.view(t, ask)
	f.update(t, func(tx kv.Tx) error { ask(tx); return nil })
	f.update(t, func(tx kv.Tx) error {
		err := errors.Join(tx.Put("a", []byte("own"), 0), tx.Put("new", []byte("n"), time.Minute), tx.Delete("b"))
		equal(t, "with own writes", show(tx, "stays", "a", "new", "b"), "x,own,n,"+absent)
		equal(t, "own writes only", show(tx, "b", "new"), absent+",n")
		return err
	})
	f.view(t, func(tx kv.Tx) { equal(t, "afterwards", show(tx, "a", "b", "new"), "own,"+absent+",n") })
}

package kvtest

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"porchlight/control/kv"
	"porchlight/test/programs"
)

func contexts(t *testing.T, f *fixture) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	refusesAll(t, f, ctx, context.Canceled)
}

func closed(t *testing.T, f *fixture) {
	f.put(t, "k", "1", 0)
	programs.Must(t, f.Close())
	refusesAll(t, f, context.Background(), kv.ErrClosed)
}

// refusesAll checks that every call fails with the error, and runs no function.
func refusesAll(t *testing.T, f *fixture, ctx context.Context, want error) {
	t.Helper()
	ran := false
	fn := func(kv.Tx) error { ran = true; return nil }
	for what, err := range map[string]error{
		"View":   f.View(ctx, fn),
		"ViewOf": f.ViewOf(ctx, kv.Rows{Keys: []string{"k"}}, fn),
		"Update": f.Update(ctx, fn),
		"PutAll": f.PutAll(ctx, 0, kv.Item{Key: "k"}),
		"Sweep":  second(f.Sweep(ctx, 1)),
	} {
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	equal(t, "a function ran", ran, false)
}

func increments(t *testing.T, f *fixture) {
	const workers, times = 16, 25
	for _, err := range each(workers, func(int) error {
		for range times {
			err := f.Update(context.Background(), func(tx kv.Tx) error {
				n := 0
				switch value, err := tx.Get("counter"); {
				case err == nil:
					if n, err = strconv.Atoi(string(value)); err != nil {
						return err
					}
				case !errors.Is(err, kv.ErrNotFound):
					return err
				}
				return tx.Put("counter", strconv.AppendInt(nil, int64(n+1), 10), 0)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}) {
		programs.Must(t, err)
	}
	equal(t, "counter", f.get(t, "counter"), strconv.Itoa(workers*times))
}

func consume(t *testing.T, f *fixture) {
	f.put(t, "token", "x", 0)
	used := errors.New("used already")
	won := 0
	for i, err := range each(64, func(i int) error {
		return f.Update(context.Background(), func(tx kv.Tx) error {
			if _, err := tx.Get("token"); errors.Is(err, kv.ErrNotFound) {
				return used
			} else if err != nil {
				return err
			}
			return errors.Join(tx.Delete("token"), tx.Put("winner", []byte(strconv.Itoa(i)), 0))
		})
	}) {
		switch {
		case err == nil:
			won++
			equal(t, "the winner", f.get(t, "winner"), strconv.Itoa(i))
		case err != used:
			t.Error(err)
		}
	}
	equal(t, "winners", won, 1)
}

func neighbours(t *testing.T, f *fixture) {
	refusal := errors.New("no")
	errs := each(64, func(i int) error {
		return f.Update(context.Background(), func(tx kv.Tx) error {
			if err := tx.Put(key("n/%02d", i), []byte("x"), 0); err != nil {
				return err
			}
			if i%3 == 0 {
				return refusal
			}
			return nil
		})
	})
	var want []string
	for i, err := range errs {
		if i%3 == 0 {
			equal(t, key("update %d", i), err, refusal)
			continue
		}
		if err != nil {
			t.Errorf("update %d: %v", i, err)
		}
		want = append(want, key("n/%02d=x", i))
	}
	equalAll(t, "what is kept", f.scan(t, "n/", "", 100), want...)
}

// Two are on call and each may leave while the other stays: of two who leave at
// once, each having read that the other is there, one must be refused.
func writeSkew(t *testing.T, f *fixture) {
	for round := range 20 {
		on := [2]string{key("%d/anna", round), key("%d/ben", round)}
		f.put(t, on[0], "on", 0)
		f.put(t, on[1], "on", 0)
		for _, err := range each(2, func(i int) error {
			return f.Update(context.Background(), func(tx kv.Tx) error {
				if get(tx, on[1-i]) != "on" {
					return nil
				}
				return tx.Put(on[i], []byte("off"), 0)
			})
		}) {
			programs.Must(t, err)
		}
		off := 0
		for _, k := range on {
			if f.get(t, k) == "off" {
				off++
			}
		}
		equal(t, key("round %d: left", round), off, 1)
	}
}

// The same by a scan: only the first may add to an empty list.
func phantom(t *testing.T, f *fixture) {
	for round := range 20 {
		prefix := key("%02d/", round)
		for _, err := range each(4, func(i int) error {
			return f.Update(context.Background(), func(tx kv.Tx) error {
				items, err := tx.Scan(prefix, "", 1)
				if err != nil || len(items) > 0 {
					return err
				}
				return tx.Put(key("%s%d", prefix, i), []byte("x"), 0)
			})
		}) {
			programs.Must(t, err)
		}
		equal(t, key("round %d: added", round), len(f.scan(t, prefix, "", 10)), 1)
	}
}

package kvtest

import (
	"context"
	"math"
	"testing"
	"time"

	"porchlight/control/kv"
	"porchlight/test/programs"
)

func expiry(t *testing.T, f *fixture) {
	f.put(t, "a", "stays", 0)
	f.put(t, "b", "minute", time.Minute)
	f.put(t, "c", "hour", time.Hour)
	f.put(t, "d", "always", math.MaxInt64)
	f.advance(time.Minute - time.Millisecond)
	equalAll(t, "before", f.scan(t, "", "", 10), "a=stays", "b=minute", "c=hour", "d=always")
	f.advance(2 * time.Millisecond)
	equal(t, "get", f.get(t, "b"), absent)
	equalAll(t, "scan", f.scan(t, "", "", 10), "a=stays", "c=hour", "d=always")
	equalAll(t, "a limit counts what is there", f.scan(t, "", "", 2), "a=stays", "c=hour")
	equalAll(t, "scan after an expired key", f.scan(t, "", "b", 1), "c=hour")
	f.update(t, func(tx kv.Tx) error {
		equal(t, "get in an update", get(tx, "b"), absent)
		equalAll(t, "scan in an update", scan(tx, "b", "", 10))
		return tx.Delete("b") // an expired key is no error either
	})
	f.put(t, "b", "again", time.Minute)
	equal(t, "put again", f.get(t, "b"), "again")
}

func expiryReplaced(t *testing.T, f *fixture) {
	f.put(t, "longer", "1", time.Minute)
	f.put(t, "longer", "2", time.Hour)
	f.put(t, "for ever", "1", time.Minute)
	f.put(t, "for ever", "2", 0)
	f.put(t, "shorter", "1", 0)
	f.put(t, "shorter", "2", time.Minute)
	f.put(t, "deleted", "1", time.Minute)
	f.update(t, func(tx kv.Tx) error { return tx.Delete("deleted") })
	f.put(t, "deleted", "2", 0)
	f.update(t, func(tx kv.Tx) error { // several times within one transaction
		for _, ttl := range []time.Duration{time.Second, 0, time.Hour} {
			if err := tx.Put("often", []byte("x"), ttl); err != nil {
				return err
			}
		}
		return nil
	})
	f.advance(2 * time.Minute)
	n, err := f.Sweep(context.Background(), 100)
	programs.Must(t, err)
	equal(t, "swept", n, 1)
	equalAll(t, "left", f.scan(t, "", "", 10), "deleted=2", "for ever=2", "longer=2", "often=x")
	f.advance(time.Hour)
	if n, err = f.Sweep(context.Background(), 100); err != nil {
		t.Fatal(err)
	}
	equal(t, "swept an hour later", n, 2)
	equalAll(t, "left in the end", f.scan(t, "", "", 10), "deleted=2", "for ever=2")
}

func sweep(t *testing.T, f *fixture) {
	ctx := context.Background()
	f.update(t, func(tx kv.Tx) error {
		for i := range 25 {
			if err := tx.Put(key("t/%02d", i), []byte("x"), time.Minute); err != nil {
				return err
			}
		}
		return tx.Put("stays", []byte("x"), 0)
	})
	sweeps := func(limits ...int) (swept []int) {
		for _, limit := range limits {
			n, err := f.Sweep(ctx, limit)
			programs.Must(t, err)
			swept = append(swept, n)
		}
		return swept
	}
	equal(t, "before anything expires", sweeps(10)[0], 0)
	f.advance(time.Hour)
	f.put(t, "t/03", "again", time.Minute) // 24 are left
	for i, n := range sweeps(10, 10, 10, 10) {
		equal(t, key("sweep %d", i+1), n, []int{10, 10, 4, 0}[i])
	}
	equalAll(t, "what is left", f.scan(t, "", "", 10), "stays=x", "t/03=again")
}

// A deadline far away may be up to an hour late, never early, and putting the
// value again moves it.
func farExpiry(t *testing.T, f *fixture) {
	const life = 48 * time.Hour
	f.put(t, "k", "1", life)
	f.advance(life - time.Nanosecond)
	equal(t, "at the end", f.get(t, "k"), "1")
	f.put(t, "k", "2", life)
	f.advance(life - time.Nanosecond)
	equal(t, "put again", f.get(t, "k"), "2")
	f.advance(time.Hour)
	equal(t, "an hour later", f.get(t, "k"), absent)
	n, err := f.Sweep(context.Background(), 100)
	programs.Must(t, err)
	equal(t, "swept", n, 1)
}

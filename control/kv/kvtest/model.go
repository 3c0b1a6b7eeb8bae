package kvtest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"porchlight/control/kv"
	"porchlight/test/programs"
)

// value is what the model knows of a key.
type value struct {
	value   string
	expires time.Time // zero: never
}

// world is the simplest store there could be: a map and a clock.
type world map[string]value

func (w world) get(key string, now time.Time) string {
	h, ok := w[key]
	if !ok || (!h.expires.IsZero() && !now.Before(h.expires)) {
		return absent
	}
	return h.value
}

func (w world) scan(prefix, after string, limit int, now time.Time) (out []string) {
	for _, k := range slices.Sorted(maps.Keys(w)) {
		if v := w.get(k, now); v != absent && strings.HasPrefix(k, prefix) && k > after && len(out) < limit {
			out = append(out, k+"="+v)
		}
	}
	return out
}

// model runs random transactions, some of which fail, while time passes and
// expired keys are swept, and compares every read with the model's.
func model(t *testing.T, f *fixture) {
	round := 0
	rapid.Check(t, func(t *rapid.T) {
		round++
		root := key("%d/", round) // a new corner of one store
		names := rapid.SampledFrom([]string{"a", "a/", "a/b", "b", "b\xff", "c"})
		name := func(what string) string { return root + names.Draw(t, what) }
		kept := world{}
		refusal := errors.New("no")
		compare := func(what, got, want string) {
			if got != want {
				t.Fatalf("%s: %q, want %q", what, got, want)
			}
		}
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			now := f.now()
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				f.advance(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second)
			case 1:
				_, err := f.Sweep(context.Background(), rapid.IntRange(1, 4).Draw(t, "sweep"))
				programs.Must(t, err)
			default:
				inside := maps.Clone(kept)
				fails := rapid.Bool().Draw(t, "fails")
				err := f.Update(context.Background(), func(tx kv.Tx) error {
					inside = maps.Clone(kept) // a store may run it again
					for range rapid.IntRange(1, 8).Draw(t, "calls") {
						k := name("key")
						switch rapid.IntRange(0, 4).Draw(t, "call") {
						case 4:
							other := name("other key")
							values, err := tx.GetAll(k, other)
							if err != nil {
								return err
							}
							for i, k := range []string{k, other} {
								got := absent
								if values[i] != nil {
									got = string(values[i])
								}
								compare("get all "+k, got, inside.get(k, now))
							}
						case 0:
							compare("get "+k, get(tx, k), inside.get(k, now))
						case 1:
							after, limit := name("after"), rapid.IntRange(1, 7).Draw(t, "limit")
							compare("scan "+k+" after "+after, strings.Join(scan(tx, k, after, limit), " "),
								strings.Join(inside.scan(k, after, limit, now), " "))
						case 2:
							if err := tx.Delete(k); err != nil {
								return err
							}
							delete(inside, k)
						case 3:
							h := value{value: rapid.StringN(0, 3, -1).Draw(t, "value")}
							ttl := time.Duration(rapid.IntRange(0, 60).Draw(t, "ttl")) * time.Second
							if ttl > 0 {
								h.expires = now.Add(ttl)
							}
							if err := tx.Put(k, []byte(h.value), ttl); err != nil {
								return err
							}
							inside[k] = h
						}
					}
					if fails {
						return refusal
					}
					return nil
				})
				switch {
				case fails && err != refusal, !fails && err != nil:
					t.Fatalf("Update: %v", err)
				case !fails:
					kept = inside
				}
			}
			err := f.View(context.Background(), func(tx kv.Tx) error {
				compare("everything", strings.Join(scan(tx, root, "", 100), " "), strings.Join(kept.scan(root, "", 100, f.now()), " "))
				return nil
			})
			programs.Must(t, err)
		}
	})
}

package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// counting is a store that counts the reads of its transactions: what is a round
// trip each where the store is elsewhere.
type counting struct {
	kv.Store
	reads int
}

func (s *counting) View(ctx context.Context, fn func(kv.Tx) error) error {
	return s.Store.View(ctx, s.counted(fn))
}

func (s *counting) Update(ctx context.Context, fn func(kv.Tx) error) error {
	return s.Store.Update(ctx, s.counted(fn))
}

func (s *counting) counted(fn func(kv.Tx) error) func(kv.Tx) error {
	return func(tx kv.Tx) error {
		known := map[string]bool{} // read together, so that a Get of them is none
		return fn(askedTx{tx, func(call string, keys ...string) error {
			for _, key := range keys {
				if call == "Get" && !known[key] {
					s.reads++
				}
				known[key] = known[key] || call == "GetAll"
			}
			if call == "GetAll" || call == "Scan" {
				s.reads++
			}
			return nil
		}})
	}
}

// Weakness: what takes a round trip for each row is slow exactly where there are
// many. Checked: the versions a node looks at twice a second, and the grants that
// go into a snapshot, are read many at a time, and all of them.
func TestManyRowsAreReadTogether(t *testing.T) {
	t.Parallel()
	const many = 2*kv.MaxKeys + 1
	store := &counting{}
	b := newBench(t, func(c *Config) { store.Store = c.Store; c.Store = store })
	var ids []string
	rows, grants := map[string]any{}, []grant{}
	for n := range many {
		id := fmt.Sprintf("%026d", n)
		ids = append(ids, id)
		rows[keyVersion(id)] = fmt.Sprint("version", n)
		grants = append(grants, grant{ID: id, AccountID: "account", ClientID: "client", ComputerID: "computer"})
	}
	b.keepAll(rows)
	b.keepGrants(grants...)
	b.drop(keyGrant(ids[1])) // an index may name a row that is gone
	got := ok[map[string]string](t)(b.Agents.versions(t.Context(), append(ids, "gone")))
	if len(got) != many+1 || got[ids[0]] == "" || got[ids[0]] == got[ids[many-1]] || got["gone"] != "" || store.reads > 3 {
		t.Errorf("%d versions in %d reads", len(got), store.reads)
	}

	store.reads = 0
	seen, err := viewed(t.Context(), b.core, func(tx *txn) (seen []string, err error) {
		for g := range eachGrant(tx, keyComputerGrants("computer")) {
			seen = append(seen, g.ID)
		}
		return seen, nil
	})
	if err != nil || !slices.Equal(seen, slices.Delete(ids, 1, 2)) || store.reads > 6 {
		t.Errorf("%d grants in %d reads, %v", len(seen), store.reads, err)
	}
}

// A store that passes is told of by what somebody is to do now; anything else is
// not taken for it.
func TestAway(t *testing.T) {
	t.Parallel()
	for err, says := range map[error]string{
		kv.ErrUnavailable:     "Nothing was changed",
		kv.ErrContended:       "Nothing was changed",
		kv.ErrFull:            "no room to keep anything just now",
		kv.ErrClosed:          "Nothing was changed",
		kv.ErrOutcomeUnknown:  "Look whether it was done",
		kv.ErrNotFound:        "",
		context.Canceled:      "",
		errors.New("another"): "",
	} {
		refusal, away := Away(fmt.Errorf("storing: %w", err))
		if away != (says != "") {
			t.Errorf("%v: away is %t", err, away)
		}
		if away && (refusal.Code != controlapi.CodeUnavailable || refusal.RetryAfter != awayFor || !strings.Contains(refusal.Message, says)) {
			t.Errorf("%v: %+v", err, refusal)
		}
	}
	for _, wait := range []time.Duration{time.Second, 12 * time.Second} {
		refusal, away := Away(fmt.Errorf("storing: %w", &kv.BusyError{RetryAfter: wait}))
		if !away || refusal.Code != controlapi.CodeUnavailable || refusal.RetryAfter != wait || !strings.Contains(refusal.Message, "Nothing was changed") {
			t.Errorf("too many wait: %+v", refusal)
		}
	}
}

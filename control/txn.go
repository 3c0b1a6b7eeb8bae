package control

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"porchlight/control/audit"
	"porchlight/control/kv"
	"porchlight/control/mail"
	"porchlight/internal/broadcast"
)

// txn is a transaction of the domain. It collects the computers whose snapshot it
// changes, and remembers the first error of the store, as a bufio.Scanner does: what is
// read afterwards is zero and not there, what is written is dropped, the store is asked
// nothing more, and run returns the error.
//
// So whoever reads a row has no error to look at, and may take "not there" for an answer,
// also where that allows something: nothing comes of it. A store that failed is never
// read as "there", what was decided without it is not kept, and the sentence for a person
// that it led to is not told. What is done outside of the store is done after run.
type txn struct {
	tx  kv.Tx // for do alone
	err error // of the store, the first

	now       time.Time
	device    Device // of whoever asks, as far as it is known
	ask       string // see Config.AbuseContact
	version   string // of every computer touched; made before, as fn may run twice
	touched   map[string]bool
	ended     []string // computers whose credential ended
	suspended []suspendedComputer
	audited   []audit.Event // told when it is over
	ends      bool          // an end was given to a share
	mails     bool          // a mail was put
}

// run is fn in this transaction. The error of the store counts before whatever fn made of
// it, and is returned as it is: by it the store knows whether to try again.
func (t *txn) run(fn func(*txn) error) error {
	if err := fn(t); t.err == nil {
		return err
	}
	return t.err
}

// do asks the store, unless it has failed before.
func (t *txn) do(ask func(kv.Tx) error) {
	if t.err == nil {
		t.err = ask(t.tx)
	}
}

// touch raises the version of a computer: every sync that waits for it is to look
// again.
func (t *txn) touch(computerID string) {
	if t.touched[computerID] {
		return
	}
	t.touched[computerID] = true
	changes, _ := get[int64](t, keyChange(computerID))
	t.put(keyChange(computerID), changes+1, 0)
	t.put(keyVersion(computerID), t.version, 0)
}

// kept is a refusal that does not undo its transaction: that a code was tried, or
// is used up, stays written.
type kept struct{ refusal error }

func (k kept) Error() string { return k.refusal.Error() }

// update runs fn in a transaction and, once it is durable, wakes the waiting syncs
// of the computers it touched; also where nobody can say whether it is, because a
// reason to look costs only a look. fn may run more than once, so it must set its
// results afresh each time and make no secrets.
func (s *core) update(ctx context.Context, fn func(*txn) error) error {
	now, version := s.now(), newID()
	var t *txn
	var refusal error // with which the transaction was kept
	err := s.store.Update(ctx, func(tx kv.Tx) error {
		t = &txn{tx: tx, now: now, device: deviceOf(ctx), ask: s.abuseContact(), version: version, touched: map[string]bool{}}
		refusal = nil
		return t.run(func(t *txn) error {
			err := fn(t)
			if kept, ok := errors.AsType[kept](err); ok {
				refusal, err = kept.refusal, nil
			}
			if err == nil && len(t.touched) > 0 && s.cfg.SharedStore && s.cfg.Tell == nil {
				t.put(keyUntold, version, 0)
			}
			return err
		})
	})
	if err == nil || errors.Is(err, kv.ErrOutcomeUnknown) {
		s.cfg.Audit.Add(t.audited...)
		s.haveLooked(t)
	}
	if err != nil {
		return err
	}
	for _, id := range t.ended {
		if s.cfg.SharedStore { // its reader is to leave this one alone
			s.endedHere.Store(endedEvent(version, id), true)
		}
		s.credentialEnded(id)
	}
	for _, c := range t.suspended {
		if s.cfg.OnSuspended != nil {
			s.cfg.OnSuspended(c.id, c.since)
		}
	}
	return refusal
}

// haveLooked has everybody look whom a transaction concerns, here and at other nodes.
func (s *core) haveLooked(t *txn) {
	tell := slices.Collect(maps.Keys(t.touched))
	s.Feed.Wake(tell...)
	if t.mails {
		s.cfg.Mail.Look(true)
		tell = append(tell, toldMail)
	}
	if s.cfg.Tell != nil && len(tell) > 0 {
		s.cfg.Tell(tell)
	}
	if t.ends {
		broadcast.Raise(s.endsWake)
	}
}

// toldMail is told among the computers that changed, whose ids are longer, where a mail
// was put.
const toldMail = "mail"

// endedEvent names the ending of a computer's credential by the transaction of
// this version.
func endedEvent(version, computerID string) string { return version + "/" + computerID }

// updated is update with a result: what fn returned in the run that counts.
func updated[T any](ctx context.Context, s *core, fn func(*txn) (T, error)) (T, error) {
	var out, none T
	err := s.update(ctx, func(tx *txn) (err error) {
		out, err = fn(tx)
		return err
	})
	if err != nil {
		return none, err
	}
	return out, nil
}

// viewed returns what fn finds in one reading transaction.
func viewed[T any](ctx context.Context, s *core, fn func(*txn) (T, error)) (T, error) {
	return looked(s, fn, func(fn func(kv.Tx) error) error { return s.store.View(ctx, fn) })
}

// looked is what fn finds in the reading transaction that in runs it in.
func looked[T any](s *core, fn func(*txn) (T, error), in func(func(kv.Tx) error) error) (T, error) {
	var out, none T
	err := in(func(tx kv.Tx) error {
		t := &txn{tx: tx, now: s.now(), ask: s.abuseContact()}
		return t.run(func(t *txn) (err error) {
			out, err = fn(t)
			return err
		})
	})
	if err != nil {
		return none, err
	}
	return out, nil
}

// attemptsOf bounds how often viewedOf tries: no row here is found by following more
// others than this.
const attemptsOf = 8

// viewedOf is viewed for rows that are known before. What fn asks for besides is read
// by another attempt, together with all the rest and so of one moment, too; an attempt
// is one round trip where the rows are elsewhere. fn must set its results afresh each
// time.
func viewedOf[T any](ctx context.Context, s *core, rows kv.Rows, fn func(*txn) (T, error)) (T, error) {
	for attempt := 0; attempt < attemptsOf && len(rows.Keys) <= kv.MaxRows; attempt++ {
		out, err := looked(s, fn, func(fn func(kv.Tx) error) error { return s.store.ViewOf(ctx, rows, fn) })
		asked, ok := errors.AsType[*kv.NotReadError](err)
		if !ok {
			return out, err
		}
		rows = rows.With(asked.Missing)
	}
	return viewed(ctx, s, fn) // one round trip for each thing it asks for
}

// note has it kept that something happened to the security of an account: no address, no secret.
func (t *txn) note(kind, accountID, what string) {
	t.audited = append(t.audited, audit.Event{Kind: kind, On: accountID, What: what})
}

// noteOften is note for what may come without end, and where nothing is written besides: the
// first ones of a day are kept.
func (s *core) noteOften(kind, accountID, what string) {
	if s.pace.spend(s.now(), budgetNotes.of(kind, accountID)) == nil {
		s.cfg.Audit.Add(audit.Event{Kind: kind, On: accountID, What: what})
	}
}

// putMail puts a mail into the queue, which hears of it when the transaction is over.
func (s *core) putMail(tx *txn, id string, m mail.Message) {
	tx.mails = true
	tx.do(func(in kv.Tx) error { return s.cfg.Mail.Put(in, id, m) })
}

// put stores a row; see kv.Tx for ttl.
func (t *txn) put(key string, value any, ttl time.Duration) {
	t.do(func(tx kv.Tx) error { return kv.PutJSON(tx, key, value, ttl) })
}

// delete deletes the rows at some keys, as far as they are there.
func (t *txn) delete(keys ...string) {
	for _, key := range keys {
		t.do(func(tx kv.Tx) error { return tx.Delete(key) })
	}
}

// deleteBelow deletes all rows under a prefix.
func (t *txn) deleteBelow(prefix string) {
	for rest := range below(t, prefix) {
		t.delete(prefix + rest)
	}
}

// getAll are the rows at some keys as they are stored, nil for what is not there; see kv.Tx.
func (t *txn) getAll(keys ...string) (values [][]byte) {
	t.do(func(tx kv.Tx) (err error) {
		values, err = tx.GetAll(keys...)
		return err
	})
	if t.err != nil {
		return make([][]byte, len(keys))
	}
	return values
}

// scan are the first rows under prefix whose keys come after another; see kv.Tx.
func (t *txn) scan(prefix, after string, limit int) (items []kv.Item) {
	t.do(func(tx kv.Tx) (err error) {
		items, err = tx.Scan(prefix, after, limit)
		return err
	})
	return items
}

// get reads the row at key; found is false when there is none.
func get[T any](t *txn, key string) (value T, found bool) {
	t.do(func(tx kv.Tx) (err error) {
		value, found, err = kv.GetJSON[T](tx, key)
		return err
	})
	if !found {
		return *new(T), false
	}
	return value, true
}

// parsed is a row as it was stored; that one cannot be read is an error of the store.
func parsed[T any](t *txn, b []byte) (row T, ok bool) {
	t.do(func(kv.Tx) (err error) {
		row, err = kv.ParseJSON[T](b)
		return err
	})
	return row, t.err == nil
}

// find is get for a row that has to be there: the error is none where it is not.
func find[T any](t *txn, key string, none error) (T, error) {
	value, found := get[T](t, key)
	if !found {
		return value, none
	}
	return value, nil
}

// keysOf are the keys of rows, one for each id.
func keysOf(ids []string, key func(id string) string) []string {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = key(id)
	}
	return keys
}

// rows are all rows under prefix, in key order.
func rows[T any](t *txn, prefix string) []T {
	out := []T{}
	for _, row := range each[T](t, prefix) {
		out = append(out, row)
	}
	return out
}

// each goes through the rows under prefix in key order, with what follows the prefix.
// Meanwhile the store may be changed.
func each[T any](t *txn, prefix string) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for items := range pages(t, prefix) {
			for _, it := range items {
				row, ok := parsed[T](t, it.Value)
				if !ok || !yield(it.Key[len(prefix):], row) {
					return
				}
			}
		}
	}
}

// below is each for rows of which only the key says something.
func below(t *txn, prefix string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for items := range pages(t, prefix) {
			for _, it := range items {
				if !yield(it.Key[len(prefix):]) {
					return
				}
			}
		}
	}
}

// pages are the rows under prefix, many at a time.
func pages(t *txn, prefix string) iter.Seq[[]kv.Item] {
	return func(yield func([]kv.Item) bool) {
		after := ""
		for {
			items := t.scan(prefix, after, kv.MaxKeys)
			if len(items) == 0 || !yield(items) || len(items) < kv.MaxKeys {
				return
			}
			after = items[len(items)-1].Key
		}
	}
}

// eachOf goes through the rows an index names, with what follows its prefix: key is
// where the row of that is. Rows that are gone are left out. The rows are read many at
// a time, because on a store elsewhere each Get is a round trip. Meanwhile the row that
// it has come to may be changed, and no other of them.
func eachOf[T any](t *txn, index string, key func(rest string) string) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for items := range pages(t, index) {
			keys := make([]string, len(items))
			for i, it := range items {
				keys[i] = key(it.Key[len(index):])
			}
			for i, value := range t.getAll(keys...) {
				if value == nil {
					continue
				}
				row, ok := parsed[T](t, value)
				if !ok || !yield(items[i].Key[len(index):], row) {
					return
				}
			}
		}
	}
}

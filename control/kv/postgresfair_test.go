package kv

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

// Weakness: an update loses to whoever changes what it has looked at, again and
// again, and in the end fails: a client that refreshes its tokens in loops would
// keep its owner from removing it. Checked: a neighbour that writes during every
// run wins a dozen times, then has to wait, and nothing that either wrote is lost.
func TestPostgresNobodyIsKeptOut(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t)
	ours, theirs := openPG(t, db), openPG(t, db)
	ctx := t.Context()
	add := func(tx Tx, mark byte) error {
		was, err := tx.Get("hot")
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		return tx.Put("hot", append(was, mark), 0)
	}
	waits := func() (is bool) {
		err := theirs.pool.QueryRow(ctx, "select exists (select 1 from pg_locks where not granted and relation = 'kv'::regclass)").Scan(&is)
		if err != nil {
			t.Error(err)
		}
		return is
	}
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	runs := 0
	var neighbour chan error
	err := ours.Update(ctx, func(tx Tx) error {
		if runs++; runs > conflictsPatient+1 {
			return errors.New("it still loses")
		}
		if err := add(tx, 'o'); err != nil {
			return err
		}
		neighbour = make(chan error, 1)
		go func(done chan<- error) {
			done <- theirs.Update(ctx, func(tx Tx) error { return add(tx, 'x') })
		}(neighbour)
		for {
			select {
			case err := <-neighbour: // it was quicker, so this run is lost
				neighbour <- nil
				return err
			case <-look.C:
				if waits() {
					return nil
				}
			}
		}
	})
	if err != nil || runs != conflictsPatient+1 {
		t.Fatalf("after %d runs: %v", runs, err)
	}
	programs.Must(t, await(t, neighbour))
	var value []byte
	programs.Must(t, ours.View(ctx, func(tx Tx) (err error) { value, err = tx.Get("hot"); return err }))
	if o, x := bytes.Count(value, []byte("o")), bytes.Count(value, []byte("x")); o != 1 || x != runs {
		t.Errorf("%d of our marks and %d of %d others are there", o, x, runs)
	}
}

// Weakness: the calls of one who does something slow or contended keep every connection.
// Checked: with many of them, half of the connections stay for others.
func TestPostgresOneTurnLeavesPlaces(t *testing.T) {
	t.Parallel()
	s := openPG(t, pgtest.Database(t)+"&pool_max_conns=2")
	slow := WithTurn(t.Context(), "slow")
	begun, end := make(chan struct{}, 2), make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			err := s.View(slow, func(tx Tx) error {
				if _, err := tx.Scan("", "", 1); err != nil {
					return err
				}
				begun <- struct{}{}
				<-end
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	<-begun
	for s.Queue().Waiting == 0 && len(begun) == 0 {
		runtime.Gosched()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.ViewOf(ctx, Rows{Keys: []string{"a"}}, func(Tx) error { return nil }); err != nil {
		t.Errorf("somebody else: %v", err)
	}
	close(end)
	wg.Wait()
}

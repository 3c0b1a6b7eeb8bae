package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"porchlight/test/programs"
)

// workload changes a store, and knows what it was told was kept.
type workload struct {
	t            *testing.T
	s            *pgStore
	stop         context.CancelFunc
	wg           sync.WaitGroup
	acknowledged [16]int
	progress     chan struct{}
}

func startWork(t *testing.T, s *pgStore) *workload {
	ctx, stop := context.WithCancel(context.Background())
	w := &workload{t: t, s: s, stop: stop, progress: make(chan struct{}, 1<<16)}
	for n := range w.acknowledged {
		w.wg.Go(func() { w.write(ctx, n) })
	}
	t.Cleanup(func() { stop(); w.wg.Wait() })
	return w
}

func (w *workload) write(ctx context.Context, worker int) {
	counter := fmt.Sprintf("counter/%d", worker)
	for i := 0; ctx.Err() == nil; i++ {
		err := w.s.Update(ctx, func(tx Tx) error {
			// The counter tells a second run of what was committed already.
			n := 0
			switch v, err := tx.Get(counter); {
			case err == nil:
				n = len(v)
			case !errors.Is(err, ErrNotFound):
				return err
			}
			return errors.Join(tx.Put(counter, bytes.Repeat([]byte("1"), n+1), 0),
				tx.Put(fmt.Sprintf("a/%d/%d", worker, i), nil, 0), tx.Put(fmt.Sprintf("b/%d/%d", worker, i), nil, 0))
		})
		if ctx.Err() != nil {
			return // this one may be there or not
		}
		if err != nil {
			w.t.Errorf("worker %d: %v", worker, err)
			return
		}
		w.acknowledged[worker]++
		select {
		case w.progress <- struct{}{}:
		default:
		}
	}
}

// work waits for n more updates, and forget forgets those that were made.
func (w *workload) work(n int) {
	w.t.Helper()
	for range n {
		select {
		case <-w.progress:
		case <-time.After(time.Minute):
			w.t.Error("the writers do not go on")
			return
		}
	}
}

func (w *workload) forget() {
	for len(w.progress) > 0 {
		<-w.progress
	}
}

// check ends the work and compares what was acknowledged with what is there.
func (w *workload) check() {
	w.t.Helper()
	w.stop()
	w.wg.Wait()
	err := w.s.View(context.Background(), func(tx Tx) error {
		for worker, n := range w.acknowledged {
			a, errA := tx.Scan(fmt.Sprintf("a/%d/", worker), "", 1<<20)
			b, errB := tx.Scan(fmt.Sprintf("b/%d/", worker), "", 1<<20)
			counter, errC := tx.Get(fmt.Sprintf("counter/%d", worker))
			if errors.Is(errC, ErrNotFound) {
				errC = nil // on a busy machine this one may not have had its turn
			}
			if err := errors.Join(errA, errB, errC); err != nil {
				return err
			}
			// The one that was under way at the end may have been kept.
			if len(a) < n || len(a) > n+1 || len(b) != len(a) || len(counter) != len(a) {
				w.t.Errorf("worker %d: %d updates acknowledged, %d and %d kept, counted as %d", worker, n, len(a), len(b), len(counter))
			}
		}
		return nil
	})
	programs.Must(w.t, err)
}

// Of two servers, named in one address, the first is killed and the second, which
// had copied every commit, takes its place; then that one refuses changes for a
// moment, as a server does that is being replaced. Nothing acknowledged is lost,
// nothing is done twice, and nobody is told of any of it.
func TestPostgresSwitchover(t *testing.T) {
	t.Parallel()
	primary := startServer(t)
	db := primary.Database(t)
	standby, err := primary.Standby()
	programs.Must(t, err)
	t.Cleanup(func() {
		if err := standby.Close(); err != nil {
			t.Error(err)
		}
	})
	both := standby.Beside(primary, db) // the one that takes no changes comes first
	w := startWork(t, openPG(t, both))
	w.work(300)
	programs.Must(t, primary.Kill())
	w.forget()
	began := time.Now()
	programs.Must(t, standby.Exec("select pg_promote(true, 60)"))
	w.work(300)
	t.Logf("300 updates %v after the order to take over", time.Since(began).Round(time.Millisecond))
	programs.Must(t, standby.Exec("alter system set default_transaction_read_only = on", "select pg_reload_conf()"))
	// It hears of the setting a moment later: first for new connections, then on others.
	programs.Eventually(t, "it takes no changes", func() bool { return standby.Exec("comment on database postgres is null") != nil })
	for !errors.Is(err, context.DeadlineExceeded) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		err = w.s.Update(ctx, func(tx Tx) error { return tx.Put("k", nil, 0) })
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a server that takes no changes just now: %v", err)
		}
	}
	w.forget()
	if _, err := Open(t.Context(), both, Options{}); err == nil || !strings.Contains(err.Error(), "takes no changes") || !strings.Contains(err.Error(), "no server listens there") {
		t.Errorf("two servers of which none can be used: %v", err)
	}
	programs.Must(t, standby.Exec("alter system reset default_transaction_read_only", "select pg_reload_conf()"))
	w.work(300)
	w.check()
}

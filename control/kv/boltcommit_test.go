package kv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"porchlight/control/kv/pgtest"
	"porchlight/internal/boltfile"
	"porchlight/test/programs"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		runRole(role)
		return
	}
	goleak.VerifyTestMain(pgtest.Stopping(m))
}

func openTemp(t *testing.T) *boltStore {
	return openStore(t, filepath.Join(t.TempDir(), "store.db")).(*boltStore)
}

func openStore(t *testing.T, url string) Store {
	t.Helper()
	s := programs.Got(Open(t.Context(), url, Options{}))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// occupy holds the committer inside a function until release is called, which
// also waits for that update to end.
func occupy(t *testing.T, s *boltStore) (release func()) {
	t.Helper()
	inside, leave, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- s.Update(context.Background(), func(tx Tx) error {
			close(inside)
			<-leave
			return tx.Put("occupied", nil, 0)
		})
	}()
	<-inside
	return func() {
		close(leave)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// queued waits until n updates wait for the committer.
func queued(s *boltStore, n int) {
	for len(s.queue) < n {
		runtime.Gosched()
	}
}

func transactions(t *testing.T, s *boltStore) (id int) {
	t.Helper()
	programs.Must(t, s.db.View(func(tx *boltfile.Tx) error { id = tx.ID(); return nil }))
	return id
}

func TestUpdatesThatWaitShareOneCommit(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	before := transactions(t, s)
	release := occupy(t, s)
	refusal := errors.New("no")
	errs := make([]error, 40)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					errs[i] = fmt.Errorf("panicked: %v", p)
				}
			}()
			errs[i] = s.Update(context.Background(), func(tx Tx) error {
				if err := tx.Put(fmt.Sprintf("n/%02d", i), nil, 0); err != nil {
					return err
				}
				switch i % 4 {
				case 1:
					return refusal
				case 2:
					panic("stop")
				}
				return nil
			})
		})
	}
	queued(s, len(errs))
	release()
	wg.Wait()
	if n := transactions(t, s) - before; n != 1 {
		t.Errorf("%d updates took %d commits, want 1", len(errs)+1, n)
	}
	for i, err := range errs {
		switch {
		case i%4 == 1 && err != refusal, i%4 == 2 && (err == nil || err.Error() != "panicked: stop"), i%4 != 1 && i%4 != 2 && err != nil:
			t.Errorf("update %d: %v", i, err)
		}
		err := s.View(context.Background(), func(tx Tx) error { _, err := tx.Get(fmt.Sprintf("n/%02d", i)); return err })
		if kept := err == nil; kept != (i%4 == 0 || i%4 == 3) {
			t.Errorf("update %d is kept: %v", i, kept)
		}
	}
}

func TestReadingUpdatesCommitNothing(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	before := transactions(t, s)
	programs.Must(t, s.Update(context.Background(), func(tx Tx) error { _, err := tx.Scan("", "", 1); return err }))
	if n, err := s.Sweep(context.Background(), 10); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if n := transactions(t, s) - before; n != 0 {
		t.Errorf("%d commits", n)
	}
}

func TestContextEndsTheWaitInTheQueue(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	release := occupy(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan error, 1)
	go func() {
		left <- s.Update(ctx, func(tx Tx) error { return tx.Put("left", nil, 0) })
	}()
	queued(s, 1)
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) { // while the committer is still occupied
		t.Errorf("Update: %v", err)
	}
	release()
	// Once a function runs, its outcome is what is answered.
	ctx, cancel = context.WithCancel(context.Background())
	if err := s.Update(ctx, func(tx Tx) error { cancel(); return tx.Put("stayed", nil, 0) }); err != nil {
		t.Errorf("Update cancelled while it ran: %v", err)
	}
	err := s.View(context.Background(), func(tx Tx) error {
		if _, err := tx.Get("left"); !errors.Is(err, ErrNotFound) {
			t.Errorf("a cancelled update is kept: %v", err)
		}
		_, err := tx.Get("stayed")
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAFullQueueWaitsAndCanBeLeft(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	release := occupy(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range queueLength + 50 {
		wg.Go(func() {
			if err := s.Update(ctx, func(tx Tx) error { return tx.Put("k", nil, 0) }); !errors.Is(err, context.Canceled) {
				t.Errorf("Update: %v", err)
			}
		})
	}
	queued(s, queueLength)
	cancel()
	wg.Wait()
	release()
	// The abandoned are passed over, and the store goes on.
	if err := s.Update(context.Background(), func(tx Tx) error { _, err := tx.Get("occupied"); return err }); err != nil {
		t.Error(err)
	}
}

// Each of many updates that race with Close is either kept or answered with
// ErrClosed.
func TestCloseAmongUpdates(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	s := openStore(t, path)
	const workers = 16
	acknowledged := make([]int, workers)
	var wg, started sync.WaitGroup
	started.Add(workers)
	for w := range workers {
		wg.Go(func() {
			for i := 0; ; i++ {
				err := s.Update(context.Background(), func(tx Tx) error { return tx.Put(fmt.Sprintf("%d/%d", w, i), nil, 0) })
				if i == 0 {
					started.Done()
				}
				if err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
					acknowledged[w] = i
					return
				}
			}
		})
	}
	started.Wait()
	programs.Must(t, s.Close())
	wg.Wait()
	err := openStore(t, path).View(context.Background(), func(tx Tx) error {
		for w, n := range acknowledged {
			items, err := tx.Scan(fmt.Sprintf("%d/", w), "", 1<<20)
			if err != nil {
				return err
			}
			if len(items) != n {
				t.Errorf("worker %d: %d acknowledged, %d kept", w, n, len(items))
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Damage found while the store is open ends it: every later call says so, and
// nothing hangs or is written any more.
func TestDamageWhileOpen(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	programs.Must(t, s.Update(context.Background(), func(tx Tx) error { return tx.Put("k", []byte("v"), 0) }))
	// Overwrite every page but the two heads, behind the store's back.
	info := programs.Got(s.file.Stat())(t)
	head := int64(2 * os.Getpagesize())
	noise := make([]byte, info.Size()-head)
	for i := range noise {
		noise[i] = 0xA5
	}
	programs.Got(s.file.WriteAt(noise, head))(t)
	update := func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			}
		}()
		return s.Update(context.Background(), func(tx Tx) error { return tx.Put("k", []byte("w"), 0) })
	}
	for n := range 3 {
		if err := update(); err == nil {
			t.Fatalf("update %d of a damaged store worked", n+1)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

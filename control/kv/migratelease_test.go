package kv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

// quick is a lease of a test, which beats often and does not end by itself.
var quick = leaseTimes{beat: 50 * time.Millisecond, ends: time.Hour, again: 20 * time.Millisecond, now: time.Now}

// old makes a store whose rows are of before any count.
func old(t *testing.T, url string) Store {
	t.Helper()
	s := openStore(t, url)
	programs.Must(t, s.Update(t.Context(), func(tx Tx) error { return errors.Join(tx.Delete("schema"), tx.Put("a", []byte("0"), 0)) }))
	return s
}

func leaseOf(t *testing.T, s Store) (row leaseRow) {
	t.Helper()
	programs.Must(t, s.View(t.Context(), func(tx Tx) (err error) { row, err = readLease(tx); return err }))
	return row
}

func init() { roles["migrator"] = migrator }

// migrator says that it is in the middle of a migration, and stays there.
func migrator(url string) error {
	s, err := openPostgres(context.Background(), url, Options{Now: time.Now})
	if err != nil {
		return err
	}
	return migrateAlone(context.Background(), s, steps(addOne, func(Tx) error {
		fmt.Println("in the middle")
		select {}
	}), quick, nil)
}

// While one process migrates, others wait for it, say so once, and find it done.
func TestOthersWaitForAMigration(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t)
	var others [4]Store
	for i := range others {
		others[i] = openStore(t, db)
	}
	s := old(t, db)
	began, goOn := make(chan struct{}), make(chan struct{})
	finish := sync.OnceFunc(func() { close(goOn) })
	var ran atomic.Int64
	step := func(tx Tx) error {
		if ran.Add(1) == 1 {
			close(began)
		}
		<-goOn
		return addOne(tx)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer finish()
	wg.Go(func() {
		if err := migrateAlone(t.Context(), s, steps(step), quick, func(error, time.Duration) { t.Error("the first one waits") }); err != nil {
			t.Error(err)
		}
	})
	<-began
	var later atomic.Int64 // in nanoseconds, for those who wait
	waiters := quick
	waiters.now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	told := make(chan error, 100)
	for _, other := range others {
		wg.Go(func() {
			if err := migrateAlone(t.Context(), other, steps(step), waiters, func(err error, _ time.Duration) { told <- err }); err != nil {
				t.Error(err)
			}
		})
	}
	for range others {
		if err := <-told; !errors.Is(err, ErrMigrating) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
			t.Errorf("who waits is told %q", err)
		}
	}
	// Nobody takes over from one that lives: between two steps of the clock, which
	// together are longer than the lease, there is a sign of life.
	for range 4 {
		later.Add(int64(quick.ends) * 6 / 10)
		before := leaseOf(t, s)
		programs.Eventually(t, "another beat", func() bool { return leaseOf(t, s) != before })
	}
	if n := len(told); n != 0 { // afterwards one that looked just before may have it for a moment
		t.Errorf("%d more were told to wait", n)
	}
	finish()
	wg.Wait()
	if n := ran.Load(); n != 1 {
		t.Errorf("the step ran %d times", n)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "schema": "1"}, all(t, s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// One that is killed in the middle leaves the rows as they were, and its lease to who
// comes after it has been silent.
func TestKilledInTheMiddleOfAMigration(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t)
	s := old(t, db)
	cmd := inRole(t, "migrator", db)
	out, err := cmd.StdoutPipe()
	programs.Must(t, err)
	programs.Must(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "in the middle\n" {
		t.Fatalf("it says %q, %v", line, err)
	}
	programs.Must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	rows := all(t, s)
	if by := rows[leaseKey]; !strings.Contains(by, fmt.Sprintf("process %d", cmd.Process.Pid)) {
		t.Errorf("the lease is %q", by)
	}
	delete(rows, leaseKey)
	if diff := cmp.Diff(map[string]string{"a": "0"}, rows); diff != "" {
		t.Errorf("the rows of before (-want +got):\n%s", diff)
	}
	waited := false
	hasty := quick // an hour goes by in three looks
	var looks atomic.Int64
	hasty.now = func() time.Time { return time.Now().Add(time.Duration(looks.Add(1)) * quick.ends / 3) }
	err = migrateAlone(t.Context(), s, steps(addOne, addOne), hasty, func(error, time.Duration) { waited = true })
	if err != nil || !waited {
		t.Fatalf("it waited: %v, and then %v", waited, err)
	}
	if diff := cmp.Diff(map[string]string{"a": "2", "schema": "2"}, all(t, s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A migration that fails leaves no lease, and one that nobody needs takes none.
func TestLeaseIsGivenBack(t *testing.T) {
	t.Parallel()
	s := old(t, pgtest.Database(t))
	refusal := errors.New("no")
	if err := migrateAlone(t.Context(), s, steps(func(Tx) error { return refusal }), quick, nil); !errors.Is(err, refusal) {
		t.Errorf("got %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	if err := migrateAlone(ended, s, steps(func(Tx) error { end(); return ended.Err() }), quick, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(map[string]string{"a": "0"}, all(t, s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	other := leaseRow{Holder: "other", By: "somebody", Beat: 1}
	programs.Must(t, s.Update(t.Context(), func(tx Tx) error { return putLease(tx, other, quick) }))
	if err := migrateAlone(t.Context(), s, nil, quick, nil); err != nil {
		t.Error(err)
	}
	ended, end = context.WithCancel(t.Context())
	err := migrateAlone(ended, s, steps(addOne), quick, func(error, time.Duration) { end() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("who is told to wait, and to stop: %v", err)
	}
}

// Look says which format rows have, whoever wrote them, and changes nothing.
func TestLookChangesNothing(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"bolt": "file:" + filepath.Join(t.TempDir(), "store.db"), "postgres": pgtest.Database(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			look := func() (f Format, err error) {
				err = Look(t.Context(), url, Options{}, func(tx Tx) error {
					values, err := tx.GetAll(FormatKeys()...)
					if err == nil {
						f, err = FormatOf(values)
					}
					if wrote := tx.Put("b", nil, 0); !errors.Is(wrote, ErrReadOnly) {
						t.Errorf("a write: %v", wrote)
					}
					return err
				})
				return f, err
			}
			for range 2 { // also after it was asked once
				if _, err := look(); !errors.Is(err, ErrNoStore) {
					t.Fatalf("of nothing: %v", err)
				}
			}
			for _, c := range []struct {
				row string // of the format
				due int
			}{{"", len(migrations)}, {"1", len(migrations) - 1}, {"7", 0}} {
				s, err := kindOf(url).open(t.Context(), url, Options{Now: time.Now})
				if err == nil {
					err = s.Update(t.Context(), func(tx Tx) error {
						if c.row == "" {
							return putLease(tx, leaseRow{By: "somebody"}, usualLease)
						}
						return errors.Join(tx.Put("schema", []byte(c.row), 0), tx.Delete(leaseKey))
					})
				}
				programs.Must(t, err, s.Close())
				f, err := look()
				want := Format{Knows: len(migrations), Due: migrations[len(migrations)-c.due:]}
				_, _ = fmt.Sscan(c.row, &want.Rows) // none is 0
				if c.row == "" {
					want.Migrating = "somebody"
				}
				due := slices.EqualFunc(f.Due, want.Due, func(a, b Migration) bool { return a.Format == b.Format })
				if f.Due, want.Due = nil, nil; err != nil || !due || !cmp.Equal(f, want) {
					t.Errorf("format %q: %+v, %v", c.row, f, err)
				}
			}
		})
	}
}

// A file that a server has open says so.
func TestLookAtAStoreInUse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	openStore(t, path)
	if err := Look(t.Context(), path, Options{}, func(Tx) error { return nil }); !errors.Is(err, ErrInUse) {
		t.Errorf("got %v", err)
	}
}

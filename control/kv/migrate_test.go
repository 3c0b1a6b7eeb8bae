package kv

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

// all are the rows of a store.
func all(t *testing.T, s Store) map[string]string {
	t.Helper()
	rows := map[string]string{}
	err := s.Dump(t.Context(), func(r Record) error { rows[r.Key] = string(r.Value); return nil })
	programs.Must(t, err)
	return rows
}

// addOne counts in the row "a" how often it ran.
func addOne(tx Tx) error {
	value, err := tx.Get("a")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(value))
	return errors.Join(err, tx.Put("a", strconv.AppendInt(nil, int64(n+1), 10), 0))
}

// steps are migrations of a test.
func steps(does ...func(Tx) error) (all []Migration) {
	for i, do := range does {
		all = append(all, Migration{Format: i + 1, step: do})
	}
	return all
}

// A store goes through the steps it has not been through, each once, all or none;
// one that has been through more than there are is refused.
func TestMigrations(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{
		"bolt": filepath.Join(t.TempDir(), "store.db"), "memory": "memory:", "postgres": pgtest.Database(t),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t, url)
			programs.Must(t, s.Update(t.Context(), func(tx Tx) error { return errors.Join(tx.Delete("schema"), tx.Put("a", []byte("0"), 0)) }))
			refusal := errors.New("no")
			refuse := func(Tx) error { return refusal }
			for _, c := range []struct {
				steps []func(Tx) error
				says  string
				want  map[string]string
			}{
				{nil, "", map[string]string{"a": "0"}},
				{[]func(Tx) error{addOne, refuse}, "format 2: no", map[string]string{"a": "0"}},
				{[]func(Tx) error{addOne, addOne}, "", map[string]string{"a": "2", "schema": "2"}},
				{[]func(Tx) error{refuse, refuse}, "", map[string]string{"a": "2", "schema": "2"}},
				{[]func(Tx) error{refuse, refuse, addOne}, "", map[string]string{"a": "3", "schema": "3"}},
				{[]func(Tx) error{refuse}, "a newer version of Porchlight wrote", map[string]string{"a": "3", "schema": "3"}},
			} {
				err := migrate(t.Context(), s, steps(c.steps...))
				if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
					t.Errorf("%d steps: %v, want %q", len(c.steps), err, c.says)
				}
				if diff := cmp.Diff(c.want, all(t, s)); diff != "" {
					t.Errorf("after %d steps (-want +got):\n%s", len(c.steps), diff)
				}
			}
		})
	}
}

// Of processes that migrate one database together one does it, also without a lease.
func TestMigrationOfASharedStoreRunsOnce(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t)
	stores := make([]Store, 8)
	for i := range stores {
		stores[i] = openStore(t, db)
	}
	programs.Must(t, stores[0].Update(t.Context(), func(tx Tx) error { return errors.Join(tx.Delete("schema"), tx.Put("a", []byte("0"), 0)) }))
	var together, done sync.WaitGroup
	together.Add(len(stores))
	for _, s := range stores {
		done.Go(func() {
			arrived := sync.OnceFunc(func() { together.Done(); together.Wait() })
			step := func(tx Tx) error { arrived(); return addOne(tx) } // all have seen that it is needed
			if err := migrate(t.Context(), s, steps(step)); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	if diff := cmp.Diff(map[string]string{"a": "1", "schema": "1"}, all(t, stores[0])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What a newer version wrote is refused with a sentence, and stays as it is.
func TestNewerStoreIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	for url, state := range map[string]func(url string) (any, error){
		path: func(string) (any, error) {
			content, err := os.ReadFile(path)
			info, statErr := os.Stat(path)
			return []any{content, info.Mode(), info.ModTime()}, errors.Join(err, statErr)
		},
		pgtest.Database(t): func(url string) (any, error) {
			s, err := openPostgres(t.Context(), url, Options{Now: time.Now})
			if err != nil {
				return nil, err
			}
			defer s.Close()
			return all(t, s), nil
		},
	} {
		s := openStore(t, url)
		newer := strconv.AppendInt(nil, int64(len(migrations)+1), 10)
		err := s.Update(t.Context(), func(tx Tx) error { return tx.Put("schema", newer, 0) })
		programs.Must(t, err, s.Close())
		if url == path { // too open, which a store of ours would be cured of
			programs.Must(t, os.Chmod(path, 0o640))
		}
		before := programs.Got(state(url))(t)
		for range 2 { // the second shows that the first let go
			_, err = Open(t.Context(), url, Options{})
			if err == nil || !strings.HasPrefix(err.Error(), "cannot open the store") || !strings.HasSuffix(err.Error(), "Run that version, or restore a backup made before it") {
				t.Errorf("%s: %v", url, err)
			}
		}
		after, err := state(url)
		if diff := cmp.Diff(before, after); err != nil || diff != "" {
			t.Errorf("%s: %v (-before +after)\n%s", url, err, diff)
		}
	}
}

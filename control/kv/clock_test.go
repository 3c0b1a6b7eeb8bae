package kv

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

// Three processes share a database, and the clocks of two of their machines are 50
// minutes off, one each way. What one keeps for a while the others see for as long, also
// who only looks, and nobody sweeps it away before.
func TestPostgresClocksApart(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t)
	ctx := t.Context()
	stores, machines := map[string]Store{}, map[string]Options{}
	for name, off := range map[string]time.Duration{"right": 0, "ahead": 50 * time.Minute, "behind": -50 * time.Minute} {
		opts := Options{machine: func() time.Time { return time.Now().Add(off) }}
		s := programs.Got(Open(ctx, db, opts))(t)
		t.Cleanup(func() { _ = s.Close() })
		stores[name], machines[name] = s, opts
		if ahead, known := ClockAhead(s); !known || (ahead+off).Abs() > time.Minute { // as far as a busy machine can tell
			t.Errorf("%s: the database is taken to be %v ahead (%t)", name, ahead, known)
		}
	}
	over := func(key string) func(Tx) error {
		return func(tx Tx) error {
			if _, err := tx.Get(key); !errors.Is(err, ErrNotFound) {
				return fmt.Errorf("%s is there (%w)", key, err)
			}
			return nil
		}
	}
	there := func(key string) func(Tx) error {
		return func(tx Tx) error { _, err := tx.Get(key); return err }
	}
	for writer, s := range stores {
		lease, short := "lease of "+writer, "short of "+writer
		err := s.Update(ctx, func(tx Tx) error {
			return errors.Join(tx.Put(lease, nil, 40*time.Minute), tx.Put(short, nil, time.Microsecond))
		})
		programs.Must(t, err)
		for reader, s := range stores {
			who := reader + " reads what " + writer + " wrote"
			programs.Eventually(t, who+" until it is over", func() bool { return s.View(ctx, over(short)) == nil })
			_, err := s.Sweep(ctx, 100)
			if err := errors.Join(err, s.View(ctx, there(lease))); err != nil {
				t.Errorf("%s: %v", who, err)
			}
			if err := Look(ctx, db, machines[reader], there(lease)); err != nil {
				t.Errorf("%s, looking: %v", who, err)
			}
			programs.Eventually(t, who+", looking, until it is over", func() bool { return Look(ctx, db, machines[reader], over(short)) == nil })
		}
	}
}

// How a database writes times is its owner's choice, and one that does not tell its time
// is used all the same.
func TestPostgresThatWritesTimesAnotherWay(t *testing.T) {
	t.Parallel()
	opts := Options{machine: func() time.Time { return time.Now().Add(-50 * time.Minute) }}
	for _, style := range []string{"SQL", "German", "Postgres"} {
		s, err := Open(t.Context(), pgtest.Database(t)+"&datestyle="+style, opts)
		if err != nil {
			t.Fatalf("%s: %v", style, err)
		}
		if ahead, _ := ClockAhead(s); (ahead - 50*time.Minute).Abs() > time.Minute {
			t.Errorf("%s: it is taken to be %v ahead", style, ahead)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	db := pgtest.Database(t)
	pgtest.SetClock(t, db, "'infinity'")
	s, err := Open(t.Context(), db, Options{})
	programs.Must(t, err)
	defer s.Close()
	_, err = s.Sweep(t.Context(), 1)
	if ahead, known := ClockAhead(s); err != nil || ahead != 0 || known {
		t.Errorf("%v (%t), %v", ahead, known, err)
	}
}

// The database is replaced by one whose clock is an hour and more ahead, and back. Each
// change is told, and nothing is deleted by a clock that jumped before a second sweep
// agrees with it.
func TestPostgresClockJumps(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t)
	set := func(ahead string) {
		pgtest.SetClock(t, db, "pg_catalog.clock_timestamp() + interval '"+ahead+"'")
	}
	set("0")
	var told []time.Duration // by those who open and sweep, which is this goroutine
	opts := Options{ClockChanged: func(was, is time.Duration) { told = append(told, was.Round(time.Hour), is.Round(time.Hour)) }}
	s, err := Open(t.Context(), db+"&pool_max_conns=1", opts)
	programs.Must(t, err)
	defer s.Close()
	err = s.Update(t.Context(), func(tx Tx) error { return errors.Join(tx.Put("a", nil, 2*time.Hour), tx.Put("b", nil, 9*time.Hour)) })
	programs.Must(t, err)
	for i, step := range []struct {
		ahead string
		swept int
	}{
		{"0", 0}, {"5 hours", 0}, {"0", 0}, {"0", 0}, {"5 hours", 0}, {"12 hours", 0}, {"infinity", 0}, {"12 hours", 2},
	} {
		if step.ahead != "infinity" {
			set(step.ahead)
		} else {
			pgtest.SetClock(t, db, "'infinity'") // it is not told, and so agrees with nothing
		}
		if n, err := s.Sweep(t.Context(), 10); err != nil || n != step.swept {
			t.Errorf("step %d: %d rows are deleted, %v", i, n, err)
		}
	}
	programs.Must(t, s.Close())
	want := []time.Duration{0, 5 * time.Hour, 5 * time.Hour, 0, 0, 5 * time.Hour, 5 * time.Hour, 12 * time.Hour}
	if !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

// A clock that is set while the program runs is noticed at the next sweep; where a process
// is told the time, nothing else counts.
func TestPostgresClockSet(t *testing.T) {
	t.Parallel()
	var off time.Duration
	off = -5 * time.Minute
	s, err := Open(t.Context(), pgtest.Database(t), Options{machine: func() time.Time { return time.Now().Add(off) }})
	programs.Must(t, err)
	defer s.Close()
	off = 0 // nobody else looks while nothing is called
	_, err = s.Sweep(t.Context(), 1)
	if ahead, _ := ClockAhead(s); err != nil || ahead.Abs() > time.Minute {
		t.Errorf("%v, %v", ahead, err)
	}
	then := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	told := programs.Got(Open(t.Context(), pgtest.Database(t), Options{Now: func() time.Time { return then }}))(t)
	defer told.Close()
	if _, err := told.Sweep(t.Context(), 1); err != nil || !Clock(told)().Equal(then) {
		t.Errorf("%v, %v", Clock(told)(), err)
	}
}

// A difference counts from a second on, and where the way is longer, from what that can
// tell.
func TestClockHeard(t *testing.T) {
	t.Parallel()
	c := newClock(nil)
	for i, step := range []struct{ ahead, took, want time.Duration }{
		{900 * time.Millisecond, 0, 0},
		{2 * time.Second, 5 * time.Second, 0},
		{3 * time.Second, 5 * time.Second, 3 * time.Second},
		{5 * time.Minute, 50 * time.Millisecond, 5 * time.Minute},
		{5*time.Minute + 900*time.Millisecond, 0, 5 * time.Minute},
		{-2 * time.Second, 0, -2 * time.Second},
		{500 * time.Millisecond, 0, 0},
	} {
		if c.heard(step.ahead, step.took); c.ahead.Load() != int64(step.want) {
			t.Errorf("step %d: %v, want %v", i, time.Duration(c.ahead.Load()), step.want)
		}
	}
}

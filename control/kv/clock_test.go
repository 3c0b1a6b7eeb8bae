package kv

import (
	"errors"
	"testing"
	"time"

	"porchlight/control/kv/pgtest"
)

// Three processes share a database, and the clocks of two of their machines are five
// minutes off, one each way. What one keeps for a while the others see for as long, and
// nobody sweeps it away before.
func TestPostgresClocksApart(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t)
	ctx := t.Context()
	stores := map[string]Store{}
	for name, off := range map[string]time.Duration{"right": 0, "ahead": 5 * time.Minute, "behind": -5 * time.Minute} {
		s, err := Open(ctx, db, Options{machine: func() time.Time { return time.Now().Add(off) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		stores[name] = s
		if by := ClockAhead(s) + off; by.Abs() >= clockApart {
			t.Errorf("%s: the database is taken to be %v ahead", name, ClockAhead(s))
		}
		if by := time.Since(Clock(s)()); by.Abs() > 2*clockApart {
			t.Errorf("%s: its clock is %v off", name, by)
		}
	}
	sees := func(by, key string, want error) {
		t.Helper()
		err := stores[by].View(ctx, func(tx Tx) error { _, err := tx.Get(key); return err })
		if !errors.Is(err, want) {
			t.Errorf("%s looks for %s: %v", by, key, err)
		}
	}
	for writer, s := range stores {
		err := s.Update(ctx, func(tx Tx) error {
			return errors.Join(tx.Put("lease of "+writer, nil, time.Minute), tx.Put("over of "+writer, nil, time.Microsecond))
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * clockApart) // what the clocks may still be apart
		for reader, s := range stores {
			sees(reader, "lease of "+writer, nil)
			sees(reader, "over of "+writer, ErrNotFound)
			if _, err := s.Sweep(ctx, 100); err != nil {
				t.Fatal(err)
			}
			sees(reader, "lease of "+writer, nil)
		}
	}
}

// A clock that is set while the program runs is noticed at the next sweep; where a process
// is told the time, nothing else counts.
func TestPostgresClockSet(t *testing.T) {
	t.Parallel()
	var off time.Duration
	off = -5 * time.Minute
	s, err := Open(t.Context(), pgtest.Database(t), Options{machine: func() time.Time { return time.Now().Add(off) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	off = 0 // nobody else looks while nothing is called
	if _, err := s.Sweep(t.Context(), 1); err != nil || ClockAhead(s) != 0 {
		t.Errorf("%v, %v", ClockAhead(s), err)
	}
	then := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	told, err := Open(t.Context(), pgtest.Database(t), Options{Now: func() time.Time { return then }})
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	if _, err := told.Sweep(t.Context(), 1); err != nil || !Clock(told)().Equal(then) {
		t.Errorf("%v, %v", Clock(told)(), err)
	}
}

// A difference counts from a second on, and not where the way is too long to tell.
func TestClockHeard(t *testing.T) {
	t.Parallel()
	c := newClock(nil)
	for i, step := range []struct{ ahead, took, want time.Duration }{
		{900 * time.Millisecond, 0, 0},
		{5 * time.Minute, 3 * time.Second, 0},
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

package access_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/agent/access"
	"porchlight/control/controlapi"
	"porchlight/internal/broadcast"
	"porchlight/test/programs"
)

// computerClocks are those of a computer whose clock can be set, under synctest.
type computerClocks struct {
	began time.Time
	set   atomic.Int64 // by how much the clock was set ahead
}

func newComputerClocks() *computerClocks { return &computerClocks{began: time.Now()} }

func (c *computerClocks) now() time.Time {
	return time.Now().Round(0).Add(time.Duration(c.set.Load()))
}
func (c *computerClocks) sinceBoot() time.Duration { return time.Since(c.began) }

// ending is a snapshot in which bob's notes end.
func ending(at time.Time) controlapi.Snapshot {
	s := snapshot(func(p []controlapi.Person) {
		p[1].Apps = []string{notes, "id-photos"}
		p[1].Until = map[string]time.Time{notes: at.UTC()}
	})
	sum := sha256.Sum256([]byte("a password"))
	s.Passwords = []controlapi.AppPassword{{ID: "p1", AccountID: bob, AppID: notes, Hash: base64.RawURLEncoding.EncodeToString(sum[:])}}
	return s
}

// enterings are all ways in that somebody may have: a browser, a token, an app
// password and a connection that rests.
func enterings(a *access.Access, app string) (allowed int, cut *atomic.Int32, leave func()) {
	cut = new(atomic.Int32)
	var leaves []func()
	for _, id := range []access.Identity{
		bobsBrowser, {AccountID: bob, GrantID: "g1"}, {AccountID: bob, PasswordID: "p1"},
	} {
		d, leave := a.Enter(id, app, func() { cut.Add(1) })
		if !d.Allowed {
			leave()
			continue
		}
		allowed, leaves = allowed+1, append(leaves, leave)
	}
	leaves = append(leaves, a.Rest(bobsBrowser, app, func() { cut.Add(1) }))
	return allowed, cut, func() {
		for _, leave := range leaves {
			leave()
		}
	}
}

// What ends is closed at its moment with the control plane away, by every way in, and
// nothing else is; the launcher and other apps stay open.
func TestAShareEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var changes broadcast.Signal
		clocks := newComputerClocks()
		a := newAccess(t, access.Config{Store: openStore(t, t.TempDir()), Changes: &changes, Now: clocks.now, SinceBoot: clocks.sinceBoot})
		programs.Run(t, a.Run)
		a.SetClockAhead(0)
		end := time.Now().Add(90 * time.Second)
		a.SetSnapshot(ending(end))
		n, cut, leave := enterings(a, notes)
		defer leave()
		if n != 3 {
			t.Fatalf("%d of 3 ways were open before", n)
		}
		_, otherCut, leaveOther := enterings(a, "id-photos")
		defer leaveOther()
		time.Sleep(90*time.Second - time.Millisecond)
		synctest.Wait()
		if cut.Load() != 0 || !a.Decide(bobsBrowser, notes).Allowed {
			t.Error("it ended too early")
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if cut.Load() != 4 {
			t.Errorf("%d of 4 connections were closed at the end", cut.Load())
		}
		if otherCut.Load() != 0 {
			t.Error("another app was closed with it")
		}
		if d := a.Decide(bobsBrowser, notes); d.Allowed || d.Reason != access.ReasonNotGiven {
			t.Errorf("after the end: %+v", d)
		}
		for _, app := range []string{"", "id-photos"} {
			decides(t, a, bobsBrowser, app, "", fmt.Sprintf("%q", app))
		}
		var told []access.Ended
		a.TakeEnded(func(e []access.Ended) { told = append(told, e...) })
		if len(told) != 1 || told[0].Closed != 3 || told[0].Doubtful || told[0].Email != "bob@example.com" || !told[0].Until.Equal(end) {
			t.Errorf("told %+v", told)
		}
		row := a.AsNow(a.Snapshot().People[1])
		if !slices.Equal(row.Apps, []string{"id-photos"}) || len(row.Until) != 0 || !row.Ended[notes].Equal(end) {
			t.Errorf("the row is %+v", row)
		}
		// Then the control plane says so too: that is no news.
		a.SetSnapshot(func() controlapi.Snapshot {
			s := ending(end)
			s.People[1].Apps, s.People[1].Until, s.People[1].Ended = []string{"id-photos"}, nil, map[string]time.Time{notes: end.UTC()}
			return s
		}())
		a.TakeEnded(func(e []access.Ended) { t.Errorf("told again: %+v", e) })
		// Given again, it opens at once.
		a.SetSnapshot(ending(time.Now().Add(time.Hour)))
		if !a.Decide(bobsBrowser, notes).Allowed {
			t.Error("prolonged, it stays closed")
		}
	})
}

// Weakness: a clock that somebody sets, or that is wrong, ends a share or keeps it.
// Checked: while the control plane has been heard of in this run, the clock changes
// nothing, set ahead or back; and the time that a computer sleeps counts.
func TestTheClockOfTheComputerEndsNothing(t *testing.T) {
	t.Parallel()
	for what, by := range map[string]time.Duration{"ahead": 10 * time.Hour, "back": -10 * time.Hour} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				clocks := newComputerClocks()
				a := newAccess(t, access.Config{Store: openStore(t, t.TempDir()), Now: clocks.now, SinceBoot: clocks.sinceBoot})
				programs.Run(t, a.Run)
				a.SetClockAhead(0)
				a.SetSnapshot(ending(time.Now().Add(time.Hour)))
				_, cut, leave := enterings(a, notes)
				defer leave()
				time.Sleep(30 * time.Minute)
				clocks.set.Store(int64(by))
				a.Woke()
				time.Sleep(29 * time.Minute)
				if cut.Load() != 0 {
					t.Error("closed before the end")
				}
				time.Sleep(time.Minute + time.Second)
				if cut.Load() != 4 {
					t.Errorf("%d connections closed by the end", cut.Load())
				}
			})
		})
	}
}

// Across a restart with the control plane away, the later counts of what was kept and
// the clock: one that is ahead closes for as long as it is wrong and ends nothing for
// good; one that was set back gains nobody any time.
func TestTheClockAcrossARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		clocks := newComputerClocks()
		round := func(run func(*access.Access)) {
			db := openStore(t, dir)
			defer db.Close()
			a := newAccess(t, access.Config{Store: db, Now: clocks.now, SinceBoot: clocks.sinceBoot})
			stop := programs.Run(t, a.Run)
			synctest.Wait()
			run(a)
			stop()
		}
		end := time.Now().Add(3 * time.Hour)
		allowed := func(a *access.Access, want bool, when string) {
			t.Helper()
			if d := a.Decide(bobsBrowser, notes); d.Allowed != want {
				t.Errorf("%s: %+v", when, d)
			}
		}
		round(func(a *access.Access) {
			a.SetClockAhead(0)
			a.SetSnapshot(ending(end))
			time.Sleep(time.Hour)
			allowed(a, true, "two hours before the end")
		})
		clocks.set.Store(int64(10 * time.Hour))
		round(func(a *access.Access) {
			allowed(a, false, "with a clock that is ahead")
			var told []access.Ended
			a.TakeEnded(func(e []access.Ended) { told = append(told, e...) })
			if len(told) != 1 || !told[0].Doubtful {
				t.Errorf("told %+v", told)
			}
			clocks.set.Store(0)
			allowed(a, true, "with the clock right again")
			clocks.set.Store(int64(10 * time.Hour))
			time.Sleep(10 * time.Minute)
		})
		round(func(a *access.Access) { // what was ahead was not kept
			a.TakeEnded(func(e []access.Ended) { t.Errorf("told again after a restart: %+v", e) })
			allowed(a, false, "still ahead")
			a.SetClockAhead(0) // the control plane answers, by the right clock
			allowed(a, true, "the control plane has answered")
			if ahead := a.ClockAhead(); ahead != 0 {
				t.Errorf("ahead by %v", ahead)
			}
		})
		clocks.set.Store(int64(-24 * time.Hour))
		round(func(a *access.Access) {
			a.Touch() // of the silence: a run that began before the last one lets nobody in
			allowed(a, true, "set back, before the end")
			time.Sleep(2 * time.Hour)
			allowed(a, false, "set back, after the end")
		})
		clocks.set.Store(0)
		round(func(a *access.Access) {
			a.SetClockAhead(0)
			allowed(a, false, "after the end")
			told := 0
			a.TakeEnded(func(e []access.Ended) { told += len(e) })
		})
	})
}

// A control plane whose own clock leaps, as that of a computer on its own does when it
// is set, is obeyed; and the owner hears that it is only a clock that says so.
func TestTheControlPlanesClockLeaps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clocks := newComputerClocks()
		a := newAccess(t, access.Config{Store: openStore(t, t.TempDir()), Now: clocks.now, SinceBoot: clocks.sinceBoot})
		programs.Run(t, a.Run)
		a.SetClockAhead(0)
		a.SetSnapshot(ending(time.Now().Add(time.Hour)))
		synctest.Wait()
		_, cut, leave := enterings(a, notes)
		defer leave()
		a.SetClockAhead(2 * time.Hour)
		synctest.Wait()
		if cut.Load() != 4 {
			t.Errorf("%d closed", cut.Load())
		}
		var told []access.Ended
		a.TakeEnded(func(e []access.Ended) { told = append(told, e...) })
		if len(told) != 1 || !told[0].Doubtful {
			t.Errorf("told %+v", told)
		}
		a.SetClockAhead(0)
		if !a.Decide(bobsBrowser, notes).Allowed {
			t.Error("closed with the clock right again")
		}
	})
}

// This computer's clock is ahead of the control plane's: that is known while anything
// ends, and only then.
func TestClockAhead(t *testing.T) {
	t.Parallel()
	a, _ := open(t, t.TempDir(), newClock())
	a.SetClockAhead(-2 * time.Hour)
	a.SetSnapshot(snapshot(nil))
	if ahead := a.ClockAhead(); ahead != 0 {
		t.Errorf("nothing ends: %v", ahead)
	}
	a.SetSnapshot(ending(time.Now().Add(24 * time.Hour)))
	if ahead := a.ClockAhead(); ahead < 2*time.Hour || ahead > 2*time.Hour+time.Minute {
		t.Errorf("ahead by %v", ahead)
	}
	a.SetClockAhead(time.Hour)
	if ahead := a.ClockAhead(); ahead != 0 {
		t.Errorf("behind: %v", ahead)
	}
}

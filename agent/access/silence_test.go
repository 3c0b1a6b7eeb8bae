package access_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
	"porchlight/agent/settings"
	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
	"porchlight/internal/broadcast"
	"porchlight/test/programs"
)

var bobsBrowser = access.Identity{AccountID: bob, Epoch: 1}

// Weakness: whoever can set the clock back keeps access for as long as they like
// while the control plane is kept away.
// Checked: the silence goes on counting from where it was, in one run and from
// one run to the next, and a run that begins before the last one ended lets
// nobody in until the control plane answers.
func TestClockSetBackExtendsNothing(t *testing.T) {
	t.Parallel()
	t.Run("in one run", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var back atomic.Int64
			a := newAccess(t, access.Config{Store: openStore(t, t.TempDir()), Now: func() time.Time {
				return time.Now().Round(0).Add(-time.Duration(back.Load())) // a clock without a monotonic part
			}})
			a.SetSnapshot(snapshot(nil))
			programs.Run(t, a.Run)
			time.Sleep(23 * time.Hour)
			back.Store(int64(12 * time.Hour))
			time.Sleep(50 * time.Minute)
			decides(t, a, bobsBrowser, notes, "", "before the day is over")
			time.Sleep(15 * time.Minute)
			decides(t, a, bobsBrowser, notes, access.ReasonStale, "after more than a day")
		})
	})
	t.Run("across restarts", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			var back atomic.Int64
			now := func() time.Time { return time.Now().Round(0).Add(-time.Duration(back.Load())) }
			round := func(run func(*access.Access)) {
				db := openStore(t, dir)
				defer db.Close()
				a := newAccess(t, access.Config{Store: db, Now: now})
				stop := programs.Run(t, a.Run)
				run(a)
				stop()
			}
			round(func(a *access.Access) {
				a.SetSnapshot(snapshot(nil))
				time.Sleep(20 * time.Hour)
			})
			back.Store(int64(30 * time.Second)) // corrected, as clocks are
			round(func(a *access.Access) {
				decides(t, a, bobsBrowser, notes, "", "after a correction of half a minute")
				time.Sleep(5 * time.Hour)
				decides(t, a, bobsBrowser, notes, access.ReasonStale, "20 hours and 5")
				a.Touch()
			})
			back.Store(int64(10 * time.Hour))
			round(func(a *access.Access) {
				decides(t, a, bobsBrowser, notes, access.ReasonStale, "begun before the last run ended")
				a.Touch()
				decides(t, a, bobsBrowser, notes, "", "with the control plane back")
			})
		})
	})
}

// A day of simulated time: syncs that work, fail for hours and work again, with
// somebody's connection open. It is closed at the moment access ends and not
// before, and what was signed in goes on when the control plane is back.
func TestADayOfSyncFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var changes broadcast.Signal
		a := newAccess(t, access.Config{Store: openStore(t, t.TempDir()), Changes: &changes})
		a.SetSnapshot(snapshot(nil))
		programs.Run(t, a.Run)
		enter := func() *atomic.Bool {
			cut := new(atomic.Bool)
			d, leave := a.Enter(bobsBrowser, notes, func() { cut.Store(true) })
			t.Cleanup(leave)
			if !d.Allowed {
				t.Fatalf("%+v", d)
			}
			return cut
		}
		healthy := func(d time.Duration) {
			for range int(d / tunnelwire.BeatAsleep) {
				time.Sleep(tunnelwire.BeatAsleep)
				a.Touch()
			}
		}
		cut := enter()
		healthy(6 * time.Hour)
		time.Sleep(20 * time.Hour) // away
		healthy(time.Hour)
		if cut.Load() {
			t.Fatal("cut off within 24 hours of silence")
		}
		began := time.Now()
		until, ok := a.AccessUntil()
		if want := began.Add(24 * time.Hour).Round(time.Minute); !ok || !until.Equal(want) {
			t.Errorf("access until %v, %v; want %v", until, ok, want)
		}
		time.Sleep(24*time.Hour - time.Second)
		if cut.Load() {
			t.Fatal("cut off before the day was over")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !cut.Load() {
			t.Fatal("still open after a day of silence")
		}
		if _, ok := a.AccessUntil(); ok || a.Decide(bobsBrowser, notes).Reason != access.ReasonStale {
			t.Error("access has not ended")
		}
		time.Sleep(48 * time.Hour)
		a.Touch()
		changed, cancel := changes.Subscribe()
		defer cancel()
		cut = enter()
		<-changed
		healthy(time.Hour)
		if cut.Load() {
			t.Error("cut off with the control plane back")
		}
	})
}

// A shorter setting ends at once what it does not cover; zero still leaves a
// minute, which a sync in good health needs; nothing gets more than a day.
func TestFailStaticSetting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var changes broadcast.Signal
		db := openStore(t, t.TempDir())
		chosen := programs.Got(settings.New(db, &changes, nil))(t)
		set := func(hours int) {
			t.Helper()
			programs.Got(chosen.Change(func(s *agentapi.Settings) { s.FailStaticHours = hours }))(t)
			synctest.Wait()
		}
		a := newAccess(t, access.Config{Store: db, Settings: chosen, Changes: &changes})
		a.SetSnapshot(snapshot(nil))
		programs.Run(t, a.Run)
		synctest.Wait()
		var cut atomic.Int32
		_, leave := a.Enter(bobsBrowser, notes, func() { cut.Add(1) })
		defer leave()
		time.Sleep(5 * time.Hour)
		if set(6); cut.Load() != 0 {
			t.Error("6 hours closed something after 5")
		}
		if set(4); cut.Load() != 1 {
			t.Errorf("4 hours closed %d connections after 5", cut.Load())
		}
		set(0)
		a.Touch()
		time.Sleep(59 * time.Second)
		decides(t, a, bobsBrowser, notes, "", "within a minute")
		time.Sleep(2 * time.Second)
		decides(t, a, bobsBrowser, notes, access.ReasonStale, "after a minute")
		set(24)
		if until, ok := a.AccessUntil(); !ok || time.Until(until) < 23*time.Hour {
			t.Errorf("with a day: until %v, %v", until, ok)
		}
	})
}

// Going dark closes everything to everybody, stands against snapshots and
// restarts, and keeps the sessions; when the disk fails it closes all the same
// and says so.
func TestDark(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	a, db := open(t, dir, c)
	a.SetSnapshot(snapshot(nil))
	cookie := programs.Got(a.NewSession(notes, bob, 1, controlapi.ProofMail))(t)
	var cut atomic.Int32
	for _, id := range []access.Identity{bobsBrowser, {AccountID: owner, Epoch: 1}, {AccountID: bob, GrantID: "g1"}} {
		_, leave := a.Enter(id, notes, func() { cut.Add(1) })
		defer leave()
	}
	since := c.now().UTC()
	closed, err := a.GoDark()
	if err != nil || !closed.OK || closed.Closed != 3 || cut.Load() != 3 {
		t.Fatalf("%+v, cut off %d, %v", closed, cut.Load(), err)
	}
	if here := a.Visitors(); len(here) != 0 {
		t.Errorf("%v are here in the dark", here)
	}
	c.advance(time.Hour)
	if _, err := a.GoDark(); err != nil || !a.DarkSince().Equal(since) {
		t.Errorf("dark since %v, %v", a.DarkSince(), err)
	}
	dark := func(what string) {
		t.Helper()
		for _, id := range []access.Identity{bobsBrowser, {AccountID: owner, Epoch: 1}, {}} {
			decides(t, a, id, notes, access.ReasonDark, what)
		}
	}
	dark("after closing")
	a.SetSnapshot(snapshot(nil))
	dark("with a new snapshot")
	db.Close()
	a, db = open(t, dir, c)
	dark("after a restart")
	if a.DarkSince() == nil || !a.DarkSince().Equal(since) {
		t.Errorf("dark since %v", a.DarkSince())
	}
	if err := a.LightUp(); err != nil || a.DarkSince() != nil {
		t.Fatal(err)
	}
	id, _, ok := a.Session(cookie, notes)
	if d := a.Decide(id, notes); !ok || !d.Allowed {
		t.Errorf("light again: %v %+v", ok, d)
	}
	db.Close()
	if _, err := a.GoDark(); agentapi.CodeOf(err) != agentapi.CodeInternal || !strings.Contains(err.Error(), "after a restart") {
		t.Errorf("without a disk: %v", err)
	}
	dark("without a disk")
	if err := a.LightUp(); agentapi.CodeOf(err) != agentapi.CodeInternal || !strings.Contains(err.Error(), "stays closed") {
		t.Errorf("without a disk: %v", err)
	}
	dark("still without a disk")
}

// What the server's operator has ended opens to nobody and ends what is open, over a
// restart too; a snapshot without it opens it again.
func TestSuspended(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	a, db := open(t, dir, c)
	a.SetSnapshot(snapshot(nil))
	var cut atomic.Int32
	all := []access.Identity{bobsBrowser, {AccountID: owner, Epoch: 1}, {AccountID: bob, GrantID: "g1"}}
	for _, id := range all {
		_, leave := a.Enter(id, notes, func() { cut.Add(1) })
		defer leave()
	}
	ended := snapshot(nil)
	ended.Suspended = &controlapi.Suspended{Ask: "abuse@porch.example"}
	if closed := a.SetSnapshot(ended); closed != 3 || cut.Load() != 3 {
		t.Errorf("it closed %d, and cut off %d", closed, cut.Load())
	}
	for _, when := range []string{"at once", "after a restart"} {
		for _, id := range append(all, access.Identity{}) {
			decides(t, a, id, notes, access.ReasonSuspended, when)
			decides(t, a, id, "", access.ReasonSuspended, when)
		}
		db.Close()
		a, db = open(t, dir, c)
	}
	if a.Suspended() == nil {
		t.Error("it forgot whom to ask")
	}
	a.SetSnapshot(snapshot(nil))
	decides(t, a, bobsBrowser, notes, "", "resumed")
	db.Close()
}

// A clock that was set back a lot is told of once, when it is found.
func TestClockSetBackIsLogged(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	a, db := open(t, dir, c)
	a.SetSnapshot(snapshot(nil))
	db.Close()
	c.advance(-time.Hour)
	var log bytes.Buffer
	newAccess(t, access.Config{Store: openStore(t, dir), Now: c.now, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if strings.Count(log.String(), "clock is earlier") != 1 {
		t.Errorf("logged %q", log.String())
	}
}

// An answer that says nothing new wakes up whoever waits for answers, and everybody else
// only after a silence.
func TestContactsWakeNobody(t *testing.T) {
	t.Parallel()
	c, changes := newClock(), new(broadcast.Signal)
	a := newAccess(t, access.Config{Store: openStore(t, t.TempDir()), Now: c.now, Changes: changes})
	a.SetSnapshot(snapshot(nil))
	changed, cancel := changes.Subscribe()
	defer cancel()
	contacted, end := a.FollowContacts()
	defer end()
	for _, silent := range []time.Duration{15 * time.Second, 59 * time.Second, time.Minute} {
		c.advance(silent)
		a.Touch()
		if len(contacted) != 1 || (len(changed) == 1) != (silent == time.Minute) {
			t.Errorf("after %v: told of a contact %d, of a change %d", silent, len(contacted), len(changed))
		}
		<-contacted
	}
}

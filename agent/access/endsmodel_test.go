package access_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"porchlight/agent/access"
	"porchlight/agent/store"
	"porchlight/test/programs"
)

// endsWorld is a computer, its control plane and the true time, told as simply as can
// be: what the control plane's clock shows is known from its last answer and the time
// since; after a restart the later of what was kept and the computer's clock counts.
type endsWorld struct {
	dir  string
	kept *store.Store
	a    *access.Access

	control time.Time     // what the control plane's clock shows
	boot    time.Duration // how long the computer has run
	set     time.Duration // by how much its clock is ahead

	end    time.Time     // of bob's notes, by the last snapshot; zero for none
	synced bool          // there is a snapshot
	heard  bool          // in this run
	known  time.Time     // what is known of the control plane's clock
	at     time.Duration // boot when that was known
	saved  time.Time     // what a restart finds
}

func (w *endsWorld) wall() time.Time { return w.control.Add(w.set) }

func (w *endsWorld) start(t *rapid.T) {
	kept, err := store.Open(w.dir)
	programs.Must(t, err)
	w.kept = kept
	w.a, err = access.New(access.Config{Store: kept, Now: w.wall, SinceBoot: func() time.Duration { return w.boot }})
	programs.Must(t, err)
	w.heard, w.known, w.at = false, w.saved, w.boot
}

func (w *endsWorld) hours(t *rapid.T, from, to int) time.Duration {
	return time.Duration(rapid.IntRange(from, to).Draw(t, "hours"))*time.Hour + 7*time.Minute
}

// answer is one of the control plane, without a snapshot.
func (w *endsWorld) answer(*rapid.T) {
	w.a.SetClockAhead(time.Until(w.control))
	w.heard, w.known, w.at = true, w.control, w.boot
}

func (w *endsWorld) sync(t *rapid.T) {
	w.answer(t)
	if w.synced && rapid.Bool().Draw(t, "unchanged") {
		w.a.Touch()
		return
	}
	w.synced, w.end = true, time.Time{}
	s := snapshot(nil)
	if rapid.Bool().Draw(t, "ends") {
		w.end = w.control.Add(w.hours(t, 0, 12) + 30*time.Second).UTC()
		s = ending(w.end)
		w.saved = w.control
	}
	w.a.SetSnapshot(s)
}

func (w *endsWorld) pass(t *rapid.T) {
	d := w.hours(t, 0, 5)
	w.control, w.boot = w.control.Add(d), w.boot+d
}

func (w *endsWorld) setClock(t *rapid.T) { w.set = w.hours(t, -30, 30) }

func (w *endsWorld) setRight(*rapid.T) { w.set = 0 }

func (w *endsWorld) leap(t *rapid.T) { w.control = w.control.Add(w.hours(t, -10, 10)) }

func (w *endsWorld) restart(t *rapid.T) {
	programs.Must(t, w.kept.Close())
	w.start(t)
}

func (w *endsWorld) check(t *rapid.T) {
	now := w.known.Add(w.boot - w.at)
	if wall := w.wall(); !w.heard && wall.After(now) {
		now = wall
	}
	d := w.a.Decide(bobsBrowser, notes)
	switch d.Reason {
	case access.ReasonStale, access.ReasonNoSnapshot: // closed by more than this is about
		return
	}
	if over := !w.end.IsZero() && !now.Before(w.end); d.Allowed == over {
		t.Fatalf("%+v at %v (heard %v), it ends at %v", d, now, w.heard, w.end)
	}
	row := w.a.AsNow(w.a.Snapshot().People[1])
	if d.Allowed != (len(row.Ended) == 0) {
		t.Fatalf("decided %+v, shown %+v", d, row)
	}
}

// Whatever happens to clocks, programs and the control plane, a share is open exactly
// until its end by the time that is known of the control plane.
func TestEndsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := &endsWorld{dir: t.TempDir(), control: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), boot: time.Hour}
		w.start(rt)
		defer func() { w.kept.Close() }()
		w.sync(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"": w.check, "answer": w.answer, "sync": w.sync, "pass": w.pass, "set the clock": w.setClock, "set it right": w.setRight,
			"the control plane's clock leaps": w.leap, "restart": w.restart,
		})
	})
}

package remote

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/control/controlapi"
)

func TestAppsAreReportedOnceForEachChange(t *testing.T) {
	t.Parallel()
	settled(t, func(t *testing.T, p *plane, h *host) {
		for range 3 { // no change, so no report
			h.changed <- struct{}{}
			synctest.Wait()
		}
		h.set(controlapi.App{ID: "a", Name: "notes", Label: "Notes", Live: true})
		h.changed <- struct{}{}
		synctest.Wait()
		if len(p.reports) != 2 || len(p.reports[0].Apps) != 0 || len(p.reports[1].Apps) != 1 {
			t.Fatalf("reports %+v", p.reports)
		}
	})
}

var notes = controlapi.App{ID: "a", Name: "notes", Label: "Notes", Live: true}

// digestOf is what a control plane says that has these apps of a host.
func digestOf(apps ...controlapi.App) string {
	return controlapi.Apps{Apps: apps, Knocks: controlapi.KnocksFromKnown}.Digest()
}

// Weakness: each computer that came back told its apps anew, by a connection beside the
// tunnel and a write to the store. Checked: nothing is asked for that before the first
// snapshot, nor after one that says what was reported; and then a change is.
func TestWhatIsKnownIsNotReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		p.has, p.down = digestOf(notes), errors.New("connection refused")
		h := prepare(t, p, func(*Config) {})
		h.set(notes)
		h.run(t)
		time.Sleep(time.Minute)
		p.set(func() { p.down = nil })
		time.Sleep(31 * time.Second) // longer than any controlapi.Backoff
		synctest.Wait()
		if p.puts != 0 || len(h.snapshots) != 1 {
			t.Fatalf("%d reports of what is known, snapshots %v", p.puts, h.snapshots)
		}
		h.set()
		h.changed <- struct{}{}
		synctest.Wait()
		if p.puts != 1 || len(p.reports[0].Apps) != 0 {
			t.Errorf("%d reports of a change: %+v", p.puts, p.reports)
		}
	})
}

// A control plane that says it has something else, because it forgot or another one took
// its place, is told again, before anything was reported and after that.
func TestWhatIsForgottenIsReportedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		p.has = digestOf(notes)
		h := prepare(t, p, func(*Config) {})
		h.set(notes)
		h.run(t)
		synctest.Wait()
		for n, version := range []string{"2", "3"} {
			p.set(func() { p.version, p.has = version, digestOf() })
			synctest.Wait()
			if len(p.reports) != n+1 || len(p.reports[n].Apps) != 1 {
				t.Fatalf("forgotten %d times: reports %+v", n+1, p.reports)
			}
		}
		p.set(func() { p.version, p.has = "4", digestOf(notes) })
		synctest.Wait()
		if len(p.reports) != 2 {
			t.Errorf("known again: %d reports", len(p.reports))
		}
	})
}

// Weakness: a snapshot that was made before the last report may say that what was reported
// before it is still there. Where the apps then become what they were, it would pass for
// the truth. Checked: it is told again.
func TestASnapshotFromBeforeAReportIsNotBelieved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		p.has = digestOf()
		h := start(t, p)
		synctest.Wait()
		h.set(notes)
		if err := h.remote.Report(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.set()
		p.set(func() { p.version = "2" }) // and says that nothing is published
		synctest.Wait()
		if last := p.reports[len(p.reports)-1]; len(p.reports) != 2 || len(last.Apps) != 0 {
			t.Errorf("the control plane still has %+v", last.Apps)
		}
	})
}

// Weakness: a report that hangs on a half-open network keeps every later one
// waiting, however little time that one has; an owner who approves an app waits
// with it.
// Checked: a report gives up when its own time is over.
func TestReportWaitsNoLongerThanItMay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		p.hang = make(chan struct{})
		h := start(t, p)
		synctest.Wait() // the first report hangs
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		given := make(chan error, 1)
		go func() { given <- h.remote.Report(ctx) }()
		select {
		case err := <-given:
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 2*time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		case <-time.After(time.Minute):
			t.Error("the second report waits for the first")
		}
		close(p.hang)
	})
}

// Weakness: a report whose answer was lost may have been taken. When the apps
// then become what they were before, nothing seems to be left to tell, and the
// control plane keeps sending visitors to an app that was revoked.
// Checked: it is told again.
func TestReportWithoutAnAnswerIsNotForgotten(t *testing.T) {
	t.Parallel()
	settled(t, func(t *testing.T, p *plane, h *host) {
		// nothing is published, and that is told
		p.set(func() { p.lost = true })
		h.set(controlapi.App{ID: "a", Name: "notes", Label: "Notes", Live: true})
		if err := h.remote.Report(t.Context()); err == nil {
			t.Fatal("no error of a broken connection")
		}
		p.set(func() { p.lost = false })
		h.set()
		if err := h.remote.Report(t.Context()); err != nil {
			t.Fatal(err)
		}
		if last := p.reports[len(p.reports)-1]; len(last.Apps) != 0 {
			t.Errorf("the control plane still has %+v", last.Apps)
		}
	})
}

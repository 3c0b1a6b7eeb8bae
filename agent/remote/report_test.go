package remote

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/control/controlapi"
	"porchlight/internal/broadcast"
	"porchlight/test/programs"
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
// its place, is told again, before anything was reported and soon after that.
func TestWhatIsForgottenIsReportedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		p.has, p.keeps = digestOf(notes), true
		h := prepare(t, p, func(*Config) {})
		h.set(notes)
		h.run(t)
		synctest.Wait()
		for n, within := range []time.Duration{0, 2 * firstAgain, 2 * leastAgain, 4 * leastAgain, 2 * firstAgain} {
			p.set(func() { p.version, p.has = p.version+"+", digestOf() })
			time.Sleep(within)
			synctest.Wait()
			if puts := p.count(); puts != n+1 {
				t.Fatalf("forgotten %d times: %d reports", n+1, puts)
			}
			if n == 3 {
				time.Sleep(3 * mostAgain) // and then it counts as the first time
			}
		}
		p.set(func() { p.version += "+" })
		time.Sleep(2 * mostAgain)
		synctest.Wait()
		if len(p.reports) != 5 || p.has != digestOf(notes) {
			t.Errorf("known again: reports %+v", p.reports)
		}
	})
}

// Weakness: a snapshot between the two steps of a report, or from before it, had the same
// apps put a second time. Checked: the next snapshot is waited for; what changed on this
// computer meanwhile is not.
func TestASnapshotAmidAReportCostsNoSecondOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		p.has = digestOf()
		h := prepare(t, p, func(*Config) {})
		h.set(notes)
		h.run(t)
		synctest.Wait()
		p.set(func() { p.version, p.has = "2", "of half a report" })
		time.Sleep(time.Second)
		p.set(func() { p.version, p.has = "3", digestOf(notes) })
		time.Sleep(mostAgain)
		if puts := p.count(); puts != 1 {
			t.Fatalf("%d reports of the same apps", puts)
		}
		p.set(func() { p.version, p.has = "4", "of half a report" })
		synctest.Wait()
		h.set()
		h.changed <- struct{}{}
		synctest.Wait()
		if puts := p.count(); puts != 2 {
			t.Errorf("%d reports after a change", puts)
		}
		p.set(func() { p.version, p.has = "5", "of half a report" })
		synctest.Wait()
		if err := h.remote.Report(t.Context()); err != nil || p.count() != 3 {
			t.Errorf("%d reports after the owner asked for it, %v", p.count(), err)
		}
	})
}

// Weakness: two agents with one credential, of a copied data directory, each put its own
// apps as soon as a snapshot told it the other one's: 1500 changes in a minute, and each
// took from people what only one of the two has. Checked: they come to rest, though all
// that changes wakes the report, and both logs say once why.
func TestACopyOfAComputerIsNotFought(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		p.has, p.keeps, p.takes = digestOf(), true, 20*time.Millisecond
		photos := controlapi.App{ID: "b", Name: "photos", Label: "Photos", Live: true}
		var logs [2]bytes.Buffer
		for i, app := range []controlapi.App{notes, photos} {
			h := prepare(t, p, func(cfg *Config) {
				changed := make(chan struct{}, 1)
				cfg.AppsChanged = changed
				cfg.OnSnapshot = func(controlapi.Snapshot) { broadcast.Raise(changed) }
				cfg.Log = slog.New(slog.NewTextHandler(&logs[i], nil))
			})
			h.set(app)
			h.run(t)
		}
		before := 0
		for _, of := range []struct {
			time time.Duration
			most int
		}{
			{time.Minute, 4}, {time.Minute, 2}, {time.Hour, 12}, {24 * time.Hour, 50}, {24 * time.Hour, 48},
		} {
			time.Sleep(of.time)
			synctest.Wait()
			puts := p.count()
			if n := puts - before; n > of.most {
				t.Fatalf("%d reports in %v", n, of.time)
			}
			before = puts
		}
		for i := range logs {
			if n := strings.Count(logs[i].String(), "keeps telling other apps"); n != 1 {
				t.Errorf("said %d times in the log of agent %d:\n%s", n, i, &logs[i])
			}
		}
	})
}

// Weakness: a control plane that knows other fields of a report never says the digest of
// what was put: each invitation, knock and address then cost a report. Checked: it is one
// an hour at last, and not none, for what it lacks may also have been lost.
func TestDigestsThatNeverAgreeCostLittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		p.has = "of other fields"
		h := prepare(t, p, func(*Config) {})
		h.set(notes)
		h.run(t)
		for i := range 24 * 60 * 6 {
			time.Sleep(10 * time.Second)
			p.set(func() { p.version = "after " + strconv.Itoa(i) })
		}
		synctest.Wait()
		if puts := p.count(); puts < 16 || puts > 32 {
			t.Errorf("%d reports in a day", puts)
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
		programs.Must(t, h.remote.Report(t.Context()))
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
		programs.Must(t, h.remote.Report(t.Context()))
		if last := p.reports[len(p.reports)-1]; len(last.Apps) != 0 {
			t.Errorf("the control plane still has %+v", last.Apps)
		}
	})
}

// When a certificate ends that cannot be renewed is told with the apps, to the second, and so
// is that none does any more.
func TestEndsOfCertificatesAreReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		var ends time.Time
		h := prepare(t, p, func(cfg *Config) { cfg.Ends = func() time.Time { return ends } })
		h.run(t)
		synctest.Wait()
		at := time.Date(2026, 12, 12, 10, 0, 0, 5, time.FixedZone("here", 3600))
		for _, ends = range []time.Time{at, at, {}} {
			h.changed <- struct{}{}
			synctest.Wait()
		}
		if len(p.reports) != 3 || !p.reports[0].CertificateEnds.IsZero() || p.reports[1].CertificateEnds != at.UTC().Truncate(time.Second) || !p.reports[2].CertificateEnds.IsZero() {
			t.Errorf("reports %+v", p.reports)
		}
		if before := (controlapi.Apps{}).Digest(); before != (controlapi.Apps{CertificateEnds: time.Time{}.UTC()}).Digest() {
			t.Error("where none ends the digest is another than that of an agent which does not know of ends")
		}
	})
}

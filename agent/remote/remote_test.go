package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/control/controlapi"
)

// plane is a control plane that answers as the test says.
type plane struct {
	mu       sync.Mutex
	version  string
	wake     chan struct{}
	down     error
	begun    bool          // a sync waits, and what it has is known
	there    error         // what HTTPS says
	looks    int           // how often that was asked
	lost     bool          // reports arrive, their answers do not
	hang     chan struct{} // reports wait until it is closed, when not nil
	has      string        // what snapshots say was reported
	keeps    bool          // reports become that, and a new version
	takes    time.Duration // each call
	puts     int           // reports that were tried
	reports  []controlapi.Apps
	versions []string // what was asked with
}

func newPlane() *plane {
	return &plane{version: "1", wake: make(chan struct{}), there: errors.New("connection refused")}
}

func (p *plane) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.wake)
	p.wake = make(chan struct{})
}

// count is how many reports were tried.
func (p *plane) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.puts
}

// Sync is that of a tunnel which is there while the plane is not down.
func (p *plane) Sync(ctx context.Context, version string, take func(controlapi.Snapshot) error) error {
	time.Sleep(p.takes)
	p.mu.Lock()
	p.versions = append(p.versions, version)
	p.mu.Unlock()
	for {
		p.mu.Lock()
		now, down, wake, has, first := p.version, p.down, p.wake, p.has, !p.begun
		p.begun = down == nil
		p.mu.Unlock()
		switch {
		case down != nil:
			return down
		case now != version:
			return take(controlapi.Snapshot{Version: now, Reported: has})
		case first:
			return take(controlapi.Snapshot{Version: now, Unchanged: true})
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wake:
		}
	}
}

// asked is how often there was a sync.
func (p *plane) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.versions)
}

func (p *plane) Answers(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looks++
	return p.there
}

func (p *plane) PutApps(ctx context.Context, apps controlapi.Apps) error {
	p.mu.Lock()
	hang := p.hang
	p.puts++
	p.mu.Unlock()
	time.Sleep(p.takes)
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down != nil {
		return p.down
	}
	p.reports = append(p.reports, apps)
	if digest := apps.Digest(); p.keeps && digest != p.has {
		p.has, p.version = digest, p.version+"+"
		close(p.wake)
		p.wake = make(chan struct{})
	}
	if p.lost {
		return errors.New("the connection broke")
	}
	return nil
}

// host runs a Remote against p inside a synctest bubble.
type host struct {
	remote    *Remote
	mu        sync.Mutex
	apps      []controlapi.App
	changed   chan struct{}
	snapshots []string
	contacts  int
	changes   int
}

func start(t *testing.T, p *plane) *host {
	h := prepare(t, p, func(*Config) {})
	h.run(t)
	return h
}

func prepare(t *testing.T, p *plane, change func(*Config)) *host {
	h := &host{changed: make(chan struct{}, 1)}
	cfg := Config{
		Control: p,
		Tunnel:  p,
		Apps: func() []controlapi.App {
			h.mu.Lock()
			defer h.mu.Unlock()
			return append([]controlapi.App(nil), h.apps...)
		},
		AppsChanged: h.changed,
		Knocks:      func() controlapi.KnocksFrom { return controlapi.KnocksFromKnown },
		OnSnapshot: func(s controlapi.Snapshot) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.snapshots = append(h.snapshots, s.Version)
		},
		OnContact: func() { h.mu.Lock(); h.contacts++; h.mu.Unlock() },
		OnChange:  func() { h.mu.Lock(); h.changes++; h.mu.Unlock() },
		Log:       slog.New(slog.DiscardHandler),
	}
	change(&cfg)
	h.remote = New(cfg)
	return h
}

func (h *host) run(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.remote.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
	})
}

// settled runs a test with a host that has told its plane all there is so far.
func settled(t *testing.T, test func(t *testing.T, p *plane, h *host)) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		h := start(t, p)
		synctest.Wait()
		test(t, p, h)
	})
}

// set has the host have these apps.
func (h *host) set(apps ...controlapi.App) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.apps = apps
}

func TestSnapshotArrivesAtOnce(t *testing.T) {
	t.Parallel()
	settled(t, func(t *testing.T, p *plane, h *host) {
		before := time.Now()
		p.set(func() { p.version = "2" })
		synctest.Wait()
		if got := h.snapshots; len(got) != 2 || got[1] != "2" {
			t.Fatalf("snapshots %v", got)
		}
		if !time.Now().Equal(before) {
			t.Fatalf("took %v", time.Since(before))
		}
		if !h.remote.State().Connected {
			t.Fatal("not connected")
		}
	})
}

func TestUnchangedCountsAsContact(t *testing.T) {
	t.Parallel()
	settled(t, func(t *testing.T, p *plane, h *host) {
		p.set(func() { p.down = errors.New("connection refused") })
		synctest.Wait()
		p.set(func() { p.down = nil })
		time.Sleep(time.Minute)
		synctest.Wait()
		if h.contacts != 1 || len(h.snapshots) != 1 {
			t.Fatalf("%d contacts, snapshots %v", h.contacts, h.snapshots)
		}
	})
}

func TestOutageIsNoticedAndMended(t *testing.T) {
	t.Parallel()
	settled(t, func(t *testing.T, p *plane, h *host) {
		p.set(func() { p.down = errors.New("connection refused") })
		time.Sleep(time.Minute)
		if h.remote.State().Connected {
			t.Fatal("connected to a plane that is down")
		}
		p.set(func() { p.down = nil; p.version = "2" })
		time.Sleep(31 * time.Second) // longer than any controlapi.Backoff
		synctest.Wait()
		if !h.remote.State().Connected || h.snapshots[len(h.snapshots)-1] != "2" {
			t.Fatalf("state %+v, snapshots %v", h.remote.State(), h.snapshots)
		}
		if h.changes != 3 { // up, down, up
			t.Fatalf("%d changes told", h.changes)
		}
	})
}

// TestBackUnchanged: that a control plane is back is seen at the first exchange,
// also where nothing changed meanwhile and the answer could be held.
func TestBackUnchanged(t *testing.T) {
	t.Parallel()
	settled(t, func(t *testing.T, p *plane, h *host) {
		p.set(func() { p.down = errors.New("connection refused") })
		time.Sleep(time.Minute)
		before := p.asked()
		p.set(func() { p.down = nil })
		for p.asked() == before {
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if !h.remote.State().Connected {
			t.Fatalf("still away: %+v", h.remote.State())
		}
	})
}

// TestWakeEndsTheWait: told that the network is back, sync and report try at once.
func TestWakeEndsTheWait(t *testing.T) {
	t.Parallel()
	settled(t, func(t *testing.T, p *plane, h *host) {
		p.set(func() { p.down = errors.New("connection refused") })
		h.set(controlapi.App{ID: "a1", Name: "notes", Label: "Notes"})
		h.changed <- struct{}{}
		time.Sleep(time.Minute)
		synctest.Wait()
		reports := func() int { p.mu.Lock(); defer p.mu.Unlock(); return len(p.reports) }
		before, at := reports(), time.Now()
		p.set(func() { p.down = nil })
		h.remote.Wake()
		synctest.Wait()
		if !h.remote.State().Connected || reports() != before+1 || !time.Now().Equal(at) {
			t.Fatalf("after %v: %+v, %d reports more", time.Since(at), h.remote.State(), reports()-before)
		}
	})
}

// Weakness: agents that a busy control plane sent away come back all the same, at once
// when something wakes them. Checked: neither sync nor report asks before the time it
// was told, and both do within half as long again.
func TestToldToComeBackLater(t *testing.T) {
	t.Parallel()
	settled(t, func(t *testing.T, p *plane, h *host) {
		const later = 40 * time.Second
		asked := func() (syncs, reports int) {
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.versions), len(p.reports)
		}
		p.set(func() {
			p.down = &controlapi.Error{Code: controlapi.CodeUnavailable, Message: "Too much to do.", RetryAfter: later}
		})
		h.set(controlapi.App{ID: "a1", Name: "notes", Label: "Notes"})
		h.changed <- struct{}{}
		synctest.Wait() // both were refused
		syncs, reports := asked()
		p.set(func() { p.down = nil })
		h.remote.Wake()
		time.Sleep(later - 30*time.Second)
		h.remote.Wake()
		synctest.Wait()
		if s, r := asked(); s != syncs || r != reports {
			t.Fatalf("%d syncs and %d reports before it was time", s-syncs, r-reports)
		}
		time.Sleep(later*3/2 - (later - 30*time.Second))
		synctest.Wait()
		if s, r := asked(); s == syncs || r == reports || !h.remote.State().Connected {
			t.Fatalf("it did not come back: %d and %d, %+v", s-syncs, r-reports, h.remote.State())
		}
	})
}

func TestRefusedCredentialIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		p.down = &controlapi.Error{Code: controlapi.CodeUnauthorized, Message: "This computer is not known here."}
		h := start(t, p)
		synctest.Wait()
		if s := h.remote.State(); s.Connected || !s.Refused {
			t.Fatalf("state %+v", s)
		}
		p.set(func() { p.down = errors.New("connection refused") }) // by another relay
		time.Sleep(time.Hour)
		if s := h.remote.State(); !s.Refused {
			t.Errorf("an hour later: %+v", s)
		}
		p.set(func() { p.down = nil })
		time.Sleep(time.Minute)
		if s := h.remote.State(); !s.Connected || s.Refused {
			t.Errorf("let in again: %+v", s)
		}
	})
}

// Where no tunnel gets through, HTTPS is asked now and then what is there, and the owner
// told. Whoever is answered by the tunnel, be it a no, does not ask: it costs a busy server
// more.
func TestWhatKeepsTheTunnelAway(t *testing.T) {
	t.Parallel()
	silent := errors.New("nobody answers")
	deferred := fmt.Errorf("agree on TLS: %w", &net.OpError{Op: "remote error", Err: errors.New("tls: internal error")})
	of := func(e error) func(State) bool {
		return func(s State) bool {
			return !s.Connected && s.Blocked == (e == nil) && s.OfBefore == errors.Is(e, controlapi.ErrOfBefore)
		}
	}
	for what, c := range map[string]struct {
		down, there error
		asks        bool
		says        func(State) bool
	}{
		"a firewall":         {silent, nil, true, of(nil)},
		"nobody is there":    {silent, silent, true, of(silent)},
		"a server of before": {silent, controlapi.OfBefore("control.example"), true, of(controlapi.ErrOfBefore)},
		"refused":            {&controlapi.Error{Code: controlapi.CodeUnavailable, Message: "Not now."}, nil, false, of(silent)},
		"too many at a time": {deferred, nil, false, of(silent)},
		"older than before":  {errOlder, nil, false, func(s State) bool { return s.Older && !s.Blocked }},
		"somebody else's":    {errForeign, nil, false, of(silent)},
		"not known any more": {&controlapi.Error{Code: controlapi.CodeUnauthorized, Message: "Unknown."}, nil, false, func(s State) bool { return s.Refused && !s.Blocked }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			settled(t, func(t *testing.T, p *plane, h *host) {
				p.set(func() { p.down, p.there = c.down, c.there })
				time.Sleep(time.Hour)
				synctest.Wait()
				if s := h.remote.State(); !c.says(s) {
					t.Errorf("%+v", s)
				}
				if p.looks > 400 || c.asks != (p.looks > 10) {
					t.Errorf("HTTPS was asked %d times in an hour", p.looks)
				}
				p.set(func() { p.down = nil })
				time.Sleep(time.Minute)
				if s := h.remote.State(); !s.Connected || s.Blocked || s.OfBefore || s.Older || s.Refused {
					t.Errorf("afterwards: %+v", s)
				}
			})
		})
	}
}

// What is another computer's, or older than the last, is not believed.
func TestForgedAndOldSnapshots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		last := controlapi.Snapshot{Line: "a", Change: 5, Left: []string{"z"}}
		h := prepare(t, p, func(c *Config) { c.ComputerID, c.Last = "mine", last })
		h.remote.cfg.OnSnapshot = func(s controlapi.Snapshot) { last = s; h.snapshots = append(h.snapshots, s.Version) }
		for _, step := range []struct {
			computer, line string
			change         int64
			believed       bool
		}{
			{"mine", "a", 4, false},
			{"theirs", "a", 6, false},
			{"", "a", 6, false},
			{"mine", "a", 5, true},
			{"mine", "a", 7, true},
			{"mine", "a", 6, false},
			{"mine", "b", 1, true}, // rows were restored
			{"mine", "b", 0, false},
			{"mine", "a", 9, false}, // a node that was left behind
			{"mine", "z", 9, false}, // of before the last restart
			{"mine", "", 0, false},  // without a line
			{"mine", "", 9, false},
			{"mine", "b", 2, true},
			{"mine", "b", 1, false},
			{"mine", "c", 1, true},
			{"mine", "b", 9, false},
		} {
			before := len(h.snapshots)
			err := h.remote.apply(controlapi.Snapshot{
				Version: "x", Computer: controlapi.Computer{ID: step.computer}, Line: step.line, Change: step.change,
				Left: []string{"c"}, // which nobody else can say
			})
			if believed := err == nil; believed != step.believed || believed != (len(h.snapshots) > before) {
				t.Errorf("%+v: %v", step, err)
			}
			if last.Line == "" || last.Change == 0 {
				t.Errorf("%+v: after a restart nothing is older than %q %d", step, last.Line, last.Change)
			}
		}
		if !slices.Equal(last.Left, []string{"b", "a", "z"}) {
			t.Errorf("%q are kept as left", last.Left)
		}
		for n := range 3 * maxLeft {
			if err := h.remote.apply(controlapi.Snapshot{Version: "x", Computer: controlapi.Computer{ID: "mine"}, Line: fmt.Sprint(n)}); err != nil || len(last.Left) > maxLeft {
				t.Fatalf("line %d: %v, %d are kept", n, err, len(last.Left))
			}
		}
	})
}

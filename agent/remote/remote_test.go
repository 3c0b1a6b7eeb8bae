package remote

import (
	"context"
	"errors"
	"log/slog"
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
	lost     bool          // reports arrive, their answers do not
	hang     chan struct{} // reports wait until it is closed, when not nil
	has      string        // what snapshots say was reported
	keeps    bool          // reports become that, and a new version
	takes    time.Duration // each call
	puts     int           // reports that were tried
	reports  []controlapi.Apps
	versions []string // what was asked with
}

func newPlane() *plane { return &plane{version: "1", wake: make(chan struct{})} }

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

func (p *plane) Sync(ctx context.Context, version string) (controlapi.Snapshot, error) {
	deadline := time.After(controlapi.SyncWait)
	time.Sleep(p.takes)
	p.mu.Lock()
	p.versions = append(p.versions, version)
	p.mu.Unlock()
	for {
		p.mu.Lock()
		now, down, wake, has := p.version, p.down, p.wake, p.has
		p.mu.Unlock()
		if down != nil {
			return controlapi.Snapshot{}, down
		}
		if now != version {
			return controlapi.Snapshot{Version: now, Reported: has}, nil
		}
		select {
		case <-ctx.Done():
			return controlapi.Snapshot{}, ctx.Err()
		case <-deadline:
			return controlapi.Snapshot{Version: now, Unchanged: true}, nil
		case <-wake:
		}
	}
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
	synctest.Test(t, func(t *testing.T) {
		h := start(t, newPlane())
		time.Sleep(10*controlapi.SyncWait + time.Second)
		synctest.Wait()
		if h.contacts != 10 || len(h.snapshots) != 1 {
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
		asked := func() int { p.mu.Lock(); defer p.mu.Unlock(); return len(p.versions) }
		before := asked()
		p.set(func() { p.down = nil })
		for asked() == before {
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
	})
}

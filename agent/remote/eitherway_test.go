package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/control/controlapi"
)

// way is a tunnel that carries the sync while it is up.
type way struct {
	plane *plane
	up    bool
	dials bool
	calls int
	not   error // it stands, and refuses
}

func (w *way) SyncedBy() (now, soon bool, changed <-chan struct{}) {
	w.plane.mu.Lock()
	defer w.plane.mu.Unlock()
	return w.up, !w.up && w.dials, w.plane.wake
}

func (w *way) Sync(ctx context.Context, version string, take func(controlapi.Snapshot) error) error {
	w.plane.mu.Lock()
	w.calls++
	w.plane.mu.Unlock()
	for {
		w.plane.mu.Lock()
		now, up, wake, not := w.plane.version, w.up, w.plane.wake, w.not
		w.plane.mu.Unlock()
		if not != nil {
			return not
		}
		if !up {
			return errors.New("the tunnel ended")
		}
		if now != version {
			return take(controlapi.Snapshot{Version: now})
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wake:
		}
	}
}

// asked is how often there was a sync by the tunnel.
func (w *way) asked() int {
	w.plane.mu.Lock()
	defer w.plane.mu.Unlock()
	return w.calls
}

// told is how often it was told that the state changed.
func (h *host) told() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changes
}

// asked is how often there was a sync over HTTPS.
func (p *plane) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.versions)
}

// The tunnel carries the sync while it can: a sync over HTTPS is given up for it, and
// HTTPS asked when it is gone for a while.
func TestSyncByEitherWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		by := &way{plane: p}
		h := prepare(t, p, func(c *Config) { c.Tunnel = by })
		h.run(t)
		synctest.Wait()
		if len(h.snapshots) != 1 || by.calls != 0 || !h.remote.State().Connected {
			t.Fatalf("%d snapshots, %d by a tunnel that is not there", len(h.snapshots), by.calls)
		}
		p.set(func() { by.up = true })
		synctest.Wait()
		if by.calls != 1 || !h.remote.State().Connected {
			t.Fatal("the sync did not move to the tunnel")
		}
		p.set(func() { p.version = "2" })
		synctest.Wait()
		https := p.asked()
		if h.snapshots[len(h.snapshots)-1] != "2" || https != 2 {
			t.Errorf("snapshots %q, asked %d times over HTTPS", h.snapshots, https)
		}
		time.Sleep(time.Hour) // in which nothing is told
		p.set(func() { by.up, by.dials = false, true })
		synctest.Wait()
		if h.remote.State().Connected {
			t.Error("connected, and nobody answers")
		}
		time.Sleep(tunnelAgain / 2)
		if p.asked() != https {
			t.Error("HTTPS is asked while the tunnel comes back")
		}
		time.Sleep(tunnelAgain)
		if p.asked() == https || !h.remote.State().Connected {
			t.Error("HTTPS is not asked though the tunnel stays away")
		}
	})
}

// Where the relays stand and cannot carry the sync, because their nodes have lost the
// store and others have not, HTTPS is asked, not before the time they tell, and goes on
// being asked while it answers. The tunnel has the sync back when it can.
func TestRelaysThatRefuseTheSync(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			p := newPlane()
			by := &way{plane: p, up: true}
			h := prepare(t, p, func(c *Config) { c.Tunnel = by })
			h.run(t)
			time.Sleep(time.Hour)
			synctest.Wait()
			not := &controlapi.Error{Code: controlapi.CodeUnavailable, Message: "Not now.", RetryAfter: after}
			p.set(func() { by.not = not })
			time.Sleep(tunnelAgain - time.Second)
			synctest.Wait()
			if n := p.asked(); n != 0 {
				t.Errorf("HTTPS asked %d times, at once with everybody", n)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if !h.remote.State().Connected || p.asked() == 0 {
				t.Fatalf("HTTPS asked %d times: %+v", p.asked(), h.remote.State())
			}
			calls, changes, https, began := by.asked(), h.told(), p.asked(), time.Now()
			time.Sleep(23 * time.Hour)
			synctest.Wait()
			if n := by.asked() - calls; n > 23*60 || n < 23*20 {
				t.Errorf("the tunnel is asked %d times in %v", n, time.Since(began))
			}
			if n := p.asked() - https; h.told() != changes || n > 4*23*60 {
				t.Errorf("%d changes of the state, HTTPS asked %d times", h.told()-changes, n)
			}
			p.set(func() { p.version = "2" })
			synctest.Wait()
			h.mu.Lock()
			if h.snapshots[len(h.snapshots)-1] != "2" {
				t.Errorf("a withdrawal is not told: %q", h.snapshots)
			}
			h.mu.Unlock()
			p.set(func() { by.not = nil })
			time.Sleep(3 * besideTunnel)
			synctest.Wait()
			https = p.asked()
			time.Sleep(time.Hour)
			synctest.Wait()
			if p.asked() != https || !h.remote.State().Connected {
				t.Error("HTTPS is asked though the tunnel carries the sync")
			}
			p.set(func() { by.not, p.down = not, not })
			calls = by.asked()
			time.Sleep(time.Hour)
			synctest.Wait()
			if n, m := p.asked()-https, by.asked()-calls; h.remote.State().Connected || n < 60 || m < 60 || n > 600 || m > 600 {
				t.Errorf("where nobody knows HTTPS is asked %d times and the tunnel %d times in an hour", n, m)
			}
		})
	}
}

// What is older than before is said by its name for as long as it is told, by either way.
func TestOlderIsSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		by := &way{plane: p, up: true, not: errOlder}
		p.down = errOlder
		h := prepare(t, p, func(c *Config) { c.Tunnel = by })
		h.run(t)
		for range 600 {
			time.Sleep(time.Second)
			if s := h.remote.State(); s.Connected || !s.Older {
				t.Fatalf("%+v", s)
			}
		}
		p.set(func() { p.down, by.not = nil, nil })
		time.Sleep(time.Minute)
		if s := h.remote.State(); !s.Connected || s.Older {
			t.Errorf("%+v", s)
		}
	})
}

// What is another computer's, or older than the last, is not believed, by whichever way.
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
			err := h.remote.take(controlapi.Snapshot{
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
			if err := h.remote.take(controlapi.Snapshot{Version: "x", Computer: controlapi.Computer{ID: "mine"}, Line: fmt.Sprint(n)}); err != nil || len(last.Left) > maxLeft {
				t.Fatalf("line %d: %v, %d are kept", n, err, len(last.Left))
			}
		}
	})
}

// A relay that does not know the credential any more has HTTPS asked at once: what the
// server's operator ended is told then, and not called a server that is away.
func TestDoubtAsksAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		by := &way{plane: p, up: true}
		h := prepare(t, p, func(c *Config) { c.Tunnel = by })
		h.run(t)
		synctest.Wait()
		p.set(func() {
			p.down = &controlapi.Error{Code: controlapi.CodeUnauthorized, Message: "This computer is not connected to an account any more."}
			by.up, by.dials = false, true // it dials, and is refused each time
		})
		synctest.Wait()
		h.remote.Doubt()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s := h.remote.State(); !s.Refused {
			t.Errorf("two seconds later it is %+v", s)
		}
	})
}

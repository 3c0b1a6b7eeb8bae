package tunnel

import (
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
)

// A computer that serves visitors is awake: it beats every second by the relays that
// can carry its sync, because while the network is open one way only a withdrawal would not
// reach what a visitor has open. One where nothing is open sleeps, and beats seldom, also
// while visitors keep connections: what is asked next is decided anew, and wakes it.

const (
	// lingers is how long it stays awake after the last that was open.
	lingers = 15 * time.Second
	// slowest is the longest answer that a beat waits longer for: no relay may have itself
	// waited for longer and longer.
	slowest = time.Second
	// contactEvery is how often the control plane's answers are told.
	contactEvery = tunnelwire.BeatAsleep
)

// visitorCame notes that a visitor's connection came, who may ask for something on it.
func (t *Tunnel) visitorCame() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.visited = time.Now()
}

// visitedLately says whether data connections should wait for visitors from the start.
func (t *Tunnel) visitedLately() bool {
	t.mu.Lock()
	visited := t.visited
	t.mu.Unlock()
	return t.cfg.Open() || !visited.IsZero() && time.Since(visited) < tunnelwire.AsleepAfter
}

// awake looks whether something is open, or was lately. As nextPing, only pulse calls it.
func (s *session) awake() bool {
	if !s.syncs || s.tunnel.cfg.Near {
		return false
	}
	open := s.tunnel.cfg.Open()
	select {
	case <-s.opened:
		open = true // between two beats
	default:
	}
	if open {
		s.served = time.Now()
	}
	return !s.served.IsZero() && time.Since(s.served) < lingers
}

// wakes is readable when something is opened that the session is to wake up for.
func (s *session) wakes() <-chan struct{} {
	if !s.syncs || s.tunnel.cfg.Near || s.often.Load() {
		return nil // nextPing looks; an app that is asked all the time wakes nobody each time
	}
	return s.opened
}

// nextPing notes when the session pings next, and says how long that is: at the same
// moments as the other slot's, so that the processor wakes up once for both.
func (s *session) nextPing() time.Duration {
	every, often := tunnelwire.PingEvery, s.awake()
	switch {
	case often:
		every = tunnelwire.BeatAwake
	case s.syncs:
		every = tunnelwire.BeatAsleep
	}
	s.often.Store(often)
	in := every - time.Since(s.tunnel.began)%every
	s.due.Store(int64(time.Since(s.tunnel.began) + in))
	return in
}

// silence is how long the relay may say nothing.
func (s *session) silence() time.Duration {
	switch {
	case s.often.Load():
		return tunnelwire.SilenceAwake + 3*min(time.Duration(s.rtt.Load()), slowest)
	case s.syncs:
		return tunnelwire.SilenceAsleep
	}
	return tunnelwire.GiveUpAfter
}

func (s *session) ping() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.asked.Store(int64(time.Since(s.tunnel.began)))
	return s.write(tunnelwire.Frame{Type: tunnelwire.Ping, Awake: s.often.Load()})
}

// pong notes an answer, which is the control plane's while this connection carries the
// sync: it would say that it cannot speak for it.
func (s *session) pong(date int64) {
	select {
	case s.pongs <- struct{}{}:
	default:
	}
	now := time.Now()
	took := now.Sub(s.tunnel.began) - time.Duration(s.asked.Load())
	if !s.stoodStill() { // otherwise that is what it took
		s.rtt.Store(int64(took))
	}
	if date > 0 && s.sync.due(now) {
		now = now.Round(0) // as the wall clock goes, which may have been set meanwhile
		s.tunnel.cfg.OnContact(controlapi.ClockAhead(time.Unix(date, 0), now.Add(-took), now))
	}
}

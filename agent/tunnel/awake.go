package tunnel

import (
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
)

// A computer that serves visitors is awake: it beats every second by the relays that
// can carry its sync, because while the network is open one way only a withdrawal would not
// reach what a visitor has open. One that serves nobody sleeps, and beats seldom.

// lingers is how long it stays awake when the last visitor has gone.
const lingers = 15 * time.Second

// contactEvery is how often the control plane's answers are told.
const contactEvery = tunnelwire.BeatAsleep

// visitorCame has the sessions beat often from now on, if they did not.
func (t *Tunnel) visitorCame() {
	t.mu.Lock()
	defer t.mu.Unlock()
	slept := !t.awake()
	t.visitors++
	if !slept || !t.awake() {
		return
	}
	for _, s := range t.sessions {
		if s != nil && s.syncs {
			select {
			case s.beats <- struct{}{}:
			default:
			}
		}
	}
}

func (t *Tunnel) visitorWent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.visitors--
	t.visited = time.Now()
}

// awake is called with mu held.
func (t *Tunnel) awake() bool {
	return !t.cfg.Near && (t.visitors > 0 || !t.visited.IsZero() && time.Since(t.visited) < lingers)
}

// visitedLately says whether data connections should wait for visitors from the start.
func (t *Tunnel) visitedLately() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.visitors > 0 || !t.visited.IsZero() && time.Since(t.visited) < tunnelwire.AsleepAfter
}

func (s *session) awake() bool {
	s.tunnel.mu.Lock()
	defer s.tunnel.mu.Unlock()
	return s.tunnel.awake()
}

// nextPing notes when the session pings next, and says how long that is: at the same
// moments as the other slot's, so that the processor wakes up once for both.
func (s *session) nextPing() time.Duration {
	every, often := tunnelwire.PingEvery, false
	switch {
	case s.syncs && s.awake():
		every, often = tunnelwire.BeatAwake, true
	case s.syncs:
		every = tunnelwire.BeatAsleep
	}
	s.writing.Lock()
	s.often = often
	s.writing.Unlock()
	in := every - time.Since(s.tunnel.began)%every
	s.due.Store(int64(time.Since(s.tunnel.began) + in))
	return in
}

// silence is how long the relay may say nothing.
func (s *session) silence() time.Duration {
	switch {
	case s.syncs && s.awake():
		return tunnelwire.SilenceAwake + 3*time.Duration(s.rtt.Load())
	case s.syncs:
		return tunnelwire.SilenceAsleep
	}
	return tunnelwire.GiveUpAfter
}

func (s *session) ping() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.asked.Store(int64(time.Since(s.tunnel.began)))
	return s.write(tunnelwire.Frame{Type: tunnelwire.Ping, Awake: s.often})
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

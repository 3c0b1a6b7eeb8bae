package tunnel

import (
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
	"porchlight/internal/broadcast"
)

// A computer where something is open is awake: it beats every second, because while the network is open one way only a withdrawal would not
// reach what a visitor has open. One where nothing is open sleeps, and beats seldom, also
// while visitors keep connections: what is asked next is decided anew, and wakes it.

const (
	// lingers is how long it stays awake after the last that was open.
	lingers = 15 * time.Second
	// An answer that takes longer than hiccup is waited for only by a relay that was slow
	// twice in a row, or whose welcome took that long, and none longer than slowest: a relay
	// that takes more cannot welcome anybody, and none may have itself waited for longer and
	// longer.
	hiccup  = time.Second
	slowest = tunnelwire.HelloWait
	// contactEvery is how often the control plane's answers are told.
	contactEvery = tunnelwire.BeatAsleep
)

// visitorCame notes that a visitor's connection came, who may ask for something on it, or
// that something of a visitor's is open.
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

// awake looks whether something is open, or was lately. Before pulse starts session
// calls it, then pulse alone, as nextPing.
func (s *session) awake() bool {
	if s.tunnel.cfg.Near {
		return false
	}
	open := s.tunnel.cfg.Open()
	select {
	case <-s.opened:
		open = true // between two beats
	default:
	}
	if open {
		s.serves()
	}
	return !s.served.IsZero() && time.Since(s.served) < lingers
}

// serves notes that something is open, or was between two beats; pulse's own, as awake.
func (s *session) serves() {
	s.served = time.Now()
	s.tunnel.visitorCame() // who has something open will want more than what came with them
}

// wakes is readable when something is opened that the session is to wake up for.
func (s *session) wakes() <-chan struct{} {
	if s.tunnel.cfg.Near || s.often.Load() {
		return nil // nextPing looks; an app that is asked all the time wakes nobody each time
	}
	return s.opened
}

// nextPing notes when the session pings next, and says how long that is: at the same
// moments as the other slot's, so that the processor wakes up once for both.
func (s *session) nextPing() time.Duration {
	every, often := tunnelwire.BeatAsleep, s.awake()
	if often {
		every = tunnelwire.BeatAwake
	}
	if was := s.often.Swap(often); often && !was {
		_ = s.listen() // or an error ends read
	}
	in := every - time.Since(s.tunnel.began)%every
	s.due.Store(int64(time.Since(s.tunnel.began) + in))
	return in
}

// listen gives the relay from now on as long as it may say nothing. It looks again
// afterwards: what read worked out for a computer that sleeps must not stand where pulse
// has woken it up meanwhile.
func (s *session) listen() error {
	for {
		often := s.often.Load()
		if err := s.conn.SetReadDeadline(time.Now().Add(s.silence(often))); err != nil {
			return err
		}
		if s.often.Load() == often {
			return nil
		}
	}
}

// silence is how long the relay may say nothing.
func (s *session) silence(often bool) time.Duration {
	if often {
		return tunnelwire.SilenceAwake + time.Duration(s.slow.Load())
	}
	return tunnelwire.SilenceAsleep
}

// probeWait is how long the relay has to answer when it is asked whether it is there.
func (s *session) probeWait() time.Duration { return probeWait + time.Duration(s.slow.Load()) }

func (s *session) ping() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.write(tunnelwire.Frame{Type: tunnelwire.Ping, Awake: s.often.Load(), Sent: int64(time.Since(s.tunnel.began))})
}

// answered notes how long the relay took to answer: three times as much longer it may be
// silent. What goes beyond a hiccup counts once, and only as far as both of the last two
// took so long, or a welcome alone: of a relay that was fast before, silence is noticed
// as soon as ever.
func (s *session) answered(took time.Duration) {
	twice := min(took, s.took, slowest)
	s.took = took
	s.slow.Store(int64(3*min(took, hiccup) + max(0, twice-hiccup)))
}

// pong notes an answer, which is the control plane's while this connection carries the
// sync: it would say that it cannot speak for it.
func (s *session) pong(f tunnelwire.Frame) {
	broadcast.Raise(s.pongs)
	now := time.Now()
	took := max(0, now.Sub(s.tunnel.began)-time.Duration(f.Sent))
	if !s.stoodStill() { // otherwise that is what it took
		s.answered(took)
	}
	if f.Date > 0 && s.sync.due(now) {
		now = now.Round(0) // as the wall clock goes, which may have been set meanwhile
		s.tunnel.cfg.OnContact(controlapi.ClockAhead(time.Unix(f.Date, 0), now.Add(-took), now))
	}
	s.tellOn()
}

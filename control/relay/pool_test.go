package relay

import (
	"cmp"
	"crypto/tls"
	"testing"

	"porchlight/control/controlapi/tunnelwire"
	"porchlight/test/programs"
)

func TestPoolFollowsDemand(t *testing.T) {
	t.Parallel()
	p := &pool{least: 4, most: 32, target: 4}
	if got := p.demand(false); got != 4 {
		t.Errorf("an empty pool asks for %d", got)
	}
	p.out = 4
	if got := p.demand(true); got != 0 {
		t.Errorf("with all asked for, %d more", got)
	}
	for range 100 {
		p.grow()
	}
	if p.target != 32 {
		t.Errorf("depth %d after many misses", p.target)
	}
	if p.out = 30; p.demand(false) != 0 || p.demand(true) != 2 {
		t.Error("a small shortage is not gathered")
	}
	p.paused = true
	if p.demand(true) != 0 {
		t.Error("asks although the agent cannot connect")
	}
	p.out, p.idle = 0, make([]*dataConn, 32)
	p.low = 32
	depth := []int{p.target}
	for range 40 {
		p.adapt()
		depth = append(depth, p.target)
		if len(p.idle) > p.target {
			t.Fatalf("%d idle at depth %d", len(p.idle), p.target)
		}
	}
	if last := depth[len(depth)-1]; last > 8 || last < 4 || depth[1] < 16 {
		t.Errorf("shrinks like %v", depth)
	}
}

// locked looks at a session while nothing changes in it.
func (s *session) locked(is func() bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return is()
}

// onlySession is the one of the only computer that is here.
func onlySession(r *Relay) *session { return r.routes.sessions()[0] }

// deepen has the pool ask for as many as visitors would have had it ask for.
func (s *session) deepen(to int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pools[plainPool].target = to
	s.nudge()
}

// Weakness: data connections parked for visitors who might come held the files that
// visitors who had come needed. Checked: when files run out they are given back.
func TestPoolsGiveBackWhenFilesRunOut(t *testing.T) {
	t.Parallel()
	const grown = 24
	r, addr := serveRelay(t, nil, nil)
	a := connectAgent(t, addr, "maya")
	s := onlySession(r)
	s.deepen(grown)
	for range grown {
		a.open(a.ticket())
	}
	programs.Eventually(t, "all are parked", func() bool { return r.Stats().Parked == grown })
	r.crowdedAt.Store(r.now().UnixNano())
	programs.Eventually(t, "they are given back", func() bool { return r.Stats().Parked == 0 })
}

// giveBack has the agent give back what it is sent until only so many tickets are out.
func (a *agent) giveBack(s *session, out int) {
	a.t.Helper()
	programs.Eventually(a.t, "the tickets are given back", func() bool {
		for len(a.tickets) > 0 {
			a.send(tunnelwire.Frame{Type: tunnelwire.Failed, Tickets: []tunnelwire.Ticket{<-a.tickets}})
		}
		return s.locked(func() bool { return len(s.pending) == out })
	})
}

// Weakness: an agent that may hold few data connections gave the other tickets back, and
// was asked for nothing until the next tick, though each visitor who came through made
// room again. Checked where no tick comes: all come through an agent that holds one.
func TestAllComeThroughAnAgentThatHoldsOne(t *testing.T) {
	t.Parallel()
	const visitors = 6
	r, addr := serveRelay(t, nil, nil)
	a := connectAgent(t, addr, "maya")
	s := onlySession(r)
	programs.Eventually(t, "the clock is stopped", func() bool {
		return s.locked(func() bool { return s.ticking && s.clock.Stop() })
	})
	hello := programs.ClientHello(t, &tls.Config{ServerName: "maya.localhost"})
	for range visitors {
		visit(t, addr, hello)
	}
	programs.Eventually(t, "all wait", func() bool {
		return s.locked(func() bool { return len(s.pools[plainPool].waiting) == visitors })
	})
	for range visitors {
		ticket := a.ticket()
		a.giveBack(s, 1)
		a.visitor(a.open(ticket), ticket)
	}
}

// Weakness: a pool that was deeper than what its agent may hold asked for the difference
// with every tick, and got it back. Checked: ticks go by and nothing more is asked.
func TestPoolIsNoDeeperThanItsAgentHolds(t *testing.T) {
	t.Parallel()
	const grown, holds = 24, 8
	r, addr := serveRelay(t, nil, nil)
	a := connectAgent(t, addr, "maya")
	s := onlySession(r)
	s.deepen(grown)
	for range holds {
		a.open(a.ticket())
	}
	programs.Eventually(t, "what the agent holds is parked", func() bool { return r.Stats().Parked == holds })
	a.giveBack(s, 0)
	first, last := 0, 0
	programs.Eventually(t, "ticks go by", func() bool {
		return s.locked(func() bool { last = s.ticks; first = cmp.Or(first, last); return last >= first+3 })
	})
	if !s.locked(func() bool { return len(s.pending) == 0 }) {
		t.Errorf("tickets were asked for, of an agent that holds no more than %d", holds)
	}
}

package relay

import (
	"maps"
	"slices"
	"time"

	"porchlight/control/controlapi/tunnelwire"
)

// Passing a visitor on costs two nodes. Where another node passes on visitors of a computer
// again and again, this one says so to the computer's agent, which then comes to that node
// besides: whoever lands there next is served there. Visits that are passed on stay so.

const (
	// comeAfter visitors within AsleepAfter are a reason to come: one person who looks once
	// makes a connection or two, and an agent that has come stays for as long after the last.
	comeAfter = 3
	// comeAgainAfter is how long an agent that did not come is not asked again.
	comeAgainAfter = time.Minute
)

// passing is what one node passes on of a computer's visitors.
type passing struct {
	visits [comeAfter]time.Time // when the last ones came, the latest last
	asked  time.Time            // when the agent was, last
}

// passedOften counts a visitor whom node passed on to c, and says whether the agent is to
// come there.
func (t *routes) passedOften(c *computer, node string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := c.passing[node]
	if p == nil {
		maps.DeleteFunc(c.passing, func(_ string, old *passing) bool {
			return now.Sub(old.visits[comeAfter-1]) >= tunnelwire.AsleepAfter
		})
		if c.passing == nil {
			c.passing = make(map[string]*passing)
		}
		p = &passing{}
		c.passing[node] = p
	}
	copy(p.visits[:], p.visits[1:])
	p.visits[comeAfter-1] = now
	if now.Sub(p.visits[0]) >= tunnelwire.AsleepAfter || now.Sub(p.asked) < comeAgainAfter {
		return false
	}
	p.asked = now
	return true
}

// askToCome notes a visitor whom node passed on to the session s of c, and where that is
// often has the agent asked to come there.
func (r *Relay) askToCome(c *computer, s *session, node string) {
	if !r.routes.passedOften(c, node, r.now()) {
		return
	}
	address, ok := r.peers.ReachedAt(node)
	if !ok {
		return
	}
	r.counters.askedToCome.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.come = append(s.come, address)
	s.nudge()
}

// makeRoom has extra sessions leave where there is no room for s, unless s is one: those of
// its own computer first, whose visitors come by s from now on. mu is held.
func (t *routes) makeRoom(s *session) (left []*session, ok bool) {
	tunnels := t.limits.maxTunnels(s.extra) - t.tunnels - 1 // beside s
	enough := func() bool { return tunnels >= 0 }
	leaves := func(old *session) {
		if old.extra && !enough() && !slices.Contains(left, old) {
			left, tunnels = append(left, old), tunnels+1
		}
	}
	if c := t.byID[s.computer.ID]; c != nil && !s.extra {
		for _, old := range c.sessions {
			leaves(old)
		}
	}
	for old := range t.extras {
		if s.extra || enough() {
			break
		}
		leaves(old)
	}
	if !enough() {
		return nil, false
	}
	for _, old := range left {
		t.drop(old)
	}
	return left, true
}

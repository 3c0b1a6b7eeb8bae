package relay

import (
	"maps"
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
	visitors    int
	since, last time.Time // when they were first counted, and the agent was last asked
}

// passedOften counts a visitor whom node passed on to c, and says whether the agent is to
// come there.
func (t *routes) passedOften(c *computer, node string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := c.passing[node]
	if p == nil || now.Sub(p.since) >= tunnelwire.AsleepAfter {
		maps.DeleteFunc(c.passing, func(_ string, old *passing) bool { return now.Sub(old.since) >= tunnelwire.AsleepAfter })
		if c.passing == nil {
			c.passing = make(map[string]*passing)
		}
		p = &passing{since: now}
		c.passing[node] = p
	}
	if p.visitors++; p.visitors < comeAfter || now.Sub(p.last) < comeAgainAfter {
		return false
	}
	p.last = now
	return true
}

// askToCome notes a visitor whom node passed on to the session s of c, and where that is
// often has the agent asked to come there.
func (r *Relay) askToCome(c *computer, s *session, node string) {
	if !r.routes.passedOften(c, node, r.now()) {
		return
	}
	address, ok := r.directory.reachedAt(node)
	if !ok {
		return
	}
	r.counters.askedToCome.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.come = append(s.come, address)
	s.nudge()
}

// reachedAt is where agents reach a node, if that leads to it and not to this one, and it
// stays.
func (d *directory) reachedAt(node string) (address string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.others() {
		if n.Node == node {
			return n.Relay.Address, !n.Draining && n.Relay != d.self.Relay
		}
	}
	return "", false
}

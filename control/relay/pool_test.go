package relay

import (
	"testing"

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

// Weakness: data connections parked for visitors who might come held the files that
// visitors who had come needed. Checked: when files run out a pool gives back what
// is beyond its least.
func TestPoolsGiveBackWhenFilesRunOut(t *testing.T) {
	t.Parallel()
	const least, grown = 4, 24
	r, addr := serveRelay(t, func(c *Config) { c.Limits.PoolMin = least }, nil)
	a := connectAgent(t, addr, "maya")
	s := r.routes.sessions()[0]
	s.mu.Lock()
	s.pools[plainPool].target = grown
	s.nudge()
	s.mu.Unlock()
	for range grown {
		a.open(a.ticket())
	}
	programs.Eventually(t, "all are parked", func() bool { return r.Stats().Parked == grown })
	r.crowdedAt.Store(r.now().UnixNano())
	programs.Eventually(t, "the rest is given back", func() bool { return r.Stats().Parked == least })
}

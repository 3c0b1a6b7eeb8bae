package access

import (
	"fmt"
	"sync/atomic"
	"time"

	"porchlight/control/controlapi"
)

// Shares end by the control plane's clock. What it shows is reckoned here: the last
// Date it answered with and how long this computer has run since, asleep or awake.
// Nobody can set that. It is kept every minute, so that a restart goes on from there;
// then the time counts that is later, that or this computer's clock, until the control
// plane answers. A clock that is ahead so closes early, for as long as it is wrong.

// controlClock reckons the control plane's time.
type controlClock struct {
	now       func() time.Time     // this computer's
	sinceBoot func() time.Duration // how long this computer has run, asleep or awake
	last      atomic.Pointer[reckoning]
}

// reckoning is what the control plane's clock showed at one moment. It is immutable.
type reckoning struct {
	at    time.Time     // zero where nothing is known
	since time.Duration // sinceBoot at that moment
	heard bool          // in this run
	// jump is how much later that was than what was reckoned before: where the
	// control plane is this computer, its clock was set.
	jump time.Duration
	// ahead is by how much this computer's clock was ahead of it.
	ahead time.Duration
}

// time is what the control plane's clock shows, and what it shows at least, whatever
// clock was wrongly set ahead.
func (c *controlClock) time() (now, least time.Time) {
	r := c.last.Load()
	now = r.at.Add(c.sinceBoot() - r.since)
	if !r.heard {
		least = now
		if wall := c.now().Round(0); wall.After(now) {
			now = wall
		}
		return now, least
	}
	return now, now.Add(-r.jump)
}

// hear notes how far the control plane's clock is at least ahead of this computer's,
// or behind (controlapi.Client.OnClock), and says whether shares may have ended, or
// begun again, by that.
func (c *controlClock) hear(ahead time.Duration) (moved bool) {
	const halfDate = time.Second / 2 // where it differs, a Date is as much too early as too late
	switch {
	case ahead > 0:
		ahead += halfDate
	case ahead < 0:
		ahead -= halfDate
	}
	before, _ := c.time()
	old := c.last.Load()
	// By the clock that ahead was told by, and not c.now.
	next := &reckoning{at: time.Now().Round(0).Add(ahead), since: c.sinceBoot(), heard: true, ahead: -ahead}
	by := next.at.Sub(before)
	if old.heard {
		next.jump = old.jump
		if by > controlapi.ClockSkew {
			next.jump += by
		}
	}
	c.last.Store(next)
	return !old.heard || by.Abs() > 2*halfDate
}

// forgetJump forgets a jump: whatever ended by it has been told.
func (c *controlClock) forgetJump() {
	if r := c.last.Load(); r.jump > 0 {
		next := *r
		next.jump = 0
		c.last.CompareAndSwap(r, &next)
	}
}

// loadTime begins with what an earlier run kept.
func (a *Access) loadTime() error {
	at, err := a.store.ControlTime()
	if err != nil {
		return fmt.Errorf("read the control plane's time: %w", err)
	}
	a.clock.last.Store(&reckoning{at: at, since: a.clock.sinceBoot()})
	return nil
}

// keepTime has a restart go on from here, where anything ends. By how much this
// computer's clock is ahead is not kept.
func (a *Access) keepTime() {
	r := a.clock.last.Load()
	if r.at.IsZero() || !a.state.Load().ends {
		return
	}
	if err := a.store.SaveControlTime(r.at.Add(a.clock.sinceBoot() - r.since)); err != nil {
		a.log.Error("the control plane's time could not be kept for a restart", "err", err)
	}
}

package agent

import (
	"context"
	"time"
)

const (
	// wakeLook is the time between two looks at the clocks, and slept what they
	// may differ by without the computer having slept.
	wakeLook = 2 * time.Second
	slept    = 10 * time.Second
)

// watchSleep has tunnel and sync look after their connections as soon as the computer
// wakes up, until ctx ends: the relay will have given them up meanwhile, and
// waiting for their silence would keep visitors out. Sleep shows as a wall clock
// that went further than the one that only runs while the computer does, on any
// system and without asking a desktop. A clock that was set looks the same, and
// costs one question to the relay.
func (a *Agent) watchSleep(ctx context.Context) error {
	look := time.NewTicker(wakeLook)
	defer look.Stop()
	before := time.Now()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
		now := time.Now()
		if gap := asleep(now.Round(0).Sub(before.Round(0)), now.Sub(before)); gap > 0 {
			a.log.Info("the computer seems to have slept; looking after the connections", "for", gap.Round(time.Second))
			a.tunnel.Wake()
			a.remote.Wake()
		}
		before = now
	}
}

// asleep is how much longer the wall clock says it was than the monotonic clock
// does; 0 where that is no more than clocks are set by.
func asleep(wall, monotonic time.Duration) time.Duration {
	if gap := wall - monotonic; gap >= slept {
		return gap
	}
	return 0
}

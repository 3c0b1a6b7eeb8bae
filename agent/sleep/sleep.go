// Package sleep tells when this computer wakes up, and how long it slept. It shows as a
// wall clock that went further than the one that only runs while the computer does, on
// any system and without asking a desktop. It also tells how long the computer has run,
// asleep or awake, which nobody can set. What follows from it is for others.
package sleep

import (
	"context"
	"time"
)

const (
	// wakeLook is the time between two looks at the clocks, and slept what they
	// may differ by without the computer having slept. Where the system tells when to
	// look (see clockSet) they are far apart.
	wakeLook = 2 * time.Second
	wakeTold = time.Minute
	slept    = 10 * time.Second
)

// clocks are what the wall clock says, and what the clock says that only runs
// while the computer does.
type clocks func() (wall, running time.Time)

func ownClocks() (wall, running time.Time) {
	now := time.Now()
	return now.Round(0), now
}

// Watch calls woke as soon as the computer wakes up, with how long it slept, until ctx
// ends. A clock that was set looks like sleep.
func Watch(ctx context.Context, woke func(time.Duration)) error {
	return watch(ctx, clockSet(ctx), ownClocks, woke)
}

func watch(ctx context.Context, set <-chan struct{}, read clocks, woke func(time.Duration)) error {
	every := wakeLook
	if set != nil {
		every = wakeTold
	}
	look := time.NewTicker(every)
	defer look.Stop()
	wall, running := read()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		case <-set:
		}
		wallNow, runningNow := read()
		if gap := asleep(wallNow.Sub(wall), runningNow.Sub(running)); gap > 0 {
			woke(gap)
		}
		wall, running = wallNow, runningNow
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

// started is where SinceBoot counts from where the system has no clock for it.
var started = time.Now()

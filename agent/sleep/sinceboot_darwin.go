package sleep

import "time"

// SinceBoot is how long this computer has run, asleep or awake; Go's own clock stands
// still while it sleeps.
func SinceBoot() time.Duration {
	const clockMonotonicRaw = 4 // CLOCK_MONOTONIC_RAW of time.h
	return unixClock(clockMonotonicRaw)
}

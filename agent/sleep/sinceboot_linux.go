package sleep

import (
	"time"

	"golang.org/x/sys/unix"
)

// SinceBoot is how long this computer has run, asleep or awake; Go's own clock stands
// still while it sleeps.
func SinceBoot() time.Duration { return unixClock(unix.CLOCK_BOOTTIME) }

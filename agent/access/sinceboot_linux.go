package access

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is how long this computer has run, asleep or awake; Go's own clock stands
// still while it sleeps.
func sinceBoot() time.Duration { return unixClock(unix.CLOCK_BOOTTIME) }

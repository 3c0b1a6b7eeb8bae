//go:build !linux && !darwin

package sleep

import "time"

// SinceBoot is how long this program has run, asleep or awake: on Windows Go's own
// clock goes on while the computer sleeps.
func SinceBoot() time.Duration { return time.Since(started) }

//go:build !linux && !darwin

package access

import "time"

// sinceBoot is how long this program has run, asleep or awake: on Windows Go's own
// clock goes on while the computer sleeps.
func sinceBoot() time.Duration { return time.Since(started) }

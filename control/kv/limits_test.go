package kv

import (
	"testing"
	"time"
)

// What is put again and again for long keeps its deadline for up to an hour, so
// that the index of deadlines is left alone; what is put for a while is exact.
func TestExpiryOf(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	const days = 48 * time.Hour
	for _, c := range []struct {
		after, ttl, want time.Duration // since noon
	}{
		{time.Minute, time.Minute, 2 * time.Minute},
		{time.Minute, farAway - 1, farAway - 1 + time.Minute},
		{0, days, days},
		{1, days, days + time.Hour},
		{59 * time.Minute, days, days + time.Hour},
		{time.Hour, days, days + time.Hour},
	} {
		if got := expiryOf(noon.Add(c.after), c.ttl); !got.Equal(noon.Add(c.want)) {
			t.Errorf("put at %v for %v: until %v, want %v", c.after, c.ttl, got.Sub(noon), c.want)
		}
	}
	if got := expiryOf(noon, 0); !got.IsZero() {
		t.Errorf("what stays expires at %v", got)
	}
}

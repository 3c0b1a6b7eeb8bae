package agent

import (
	"testing"
	"time"
)

func TestSleepShowsInTheClocks(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct{ wall, monotonic, want time.Duration }{
		"awake":                {wakeLook, wakeLook, 0},
		"busy":                 {time.Minute, time.Minute, 0},
		"set a little":         {wakeLook + slept - 1, wakeLook, 0},
		"set back":             {-time.Hour, wakeLook, 0},
		"asleep for an hour":   {time.Hour, wakeLook, time.Hour - wakeLook},
		"asleep for a moment":  {wakeLook + slept, wakeLook, slept},
		"a clock set by a day": {24 * time.Hour, 0, 24 * time.Hour},
	} {
		if got := asleep(c.wall, c.monotonic); got != c.want {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

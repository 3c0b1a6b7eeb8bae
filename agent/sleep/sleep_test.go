package sleep

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// lookRhythm is how often the clocks are compared.
const lookRhythm = wakeLook

// TestWakesOnce: a computer that slept is looked after at the next look, once, and
// one that did not is left alone.
func TestWakesOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sleptFor atomic.Int64 // in all
		read := func() (wall, running time.Time) {
			now := time.Now()
			return now.Round(0).Add(time.Duration(sleptFor.Load())), now
		}
		var woke []time.Duration
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- watch(ctx, nil, read, func(gap time.Duration) { woke = append(woke, gap) }) }()
		for _, total := range []time.Duration{0, time.Hour, time.Hour, 3 * time.Hour} {
			synctest.Wait()
			sleptFor.Store(int64(total))
			time.Sleep(time.Minute)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if want := []time.Duration{time.Hour, 2 * time.Hour}; !slices.Equal(woke, want) {
			t.Errorf("woke after %v, want %v", woke, want)
		}
	})
}

func TestSleepShowsInTheClocks(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct{ wall, monotonic, want time.Duration }{
		"awake":                {lookRhythm, lookRhythm, 0},
		"busy":                 {time.Minute, time.Minute, 0},
		"set a little":         {lookRhythm + slept - 1, lookRhythm, 0},
		"set back":             {-time.Hour, lookRhythm, 0},
		"asleep for an hour":   {time.Hour, lookRhythm, time.Hour - lookRhythm},
		"asleep for a moment":  {lookRhythm + slept, lookRhythm, slept},
		"a clock set by a day": {24 * time.Hour, 0, 24 * time.Hour},
	} {
		if got := asleep(c.wall, c.monotonic); got != c.want {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

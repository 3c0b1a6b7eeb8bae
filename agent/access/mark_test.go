package access

import (
	"testing"
	"time"
	"unsafe"
)

// asleep is a time in which the wall's clock has gone on by d since at, and the
// monotonic one has not: on Linux it stands still while a laptop sleeps. The
// layout is that of time.Time, which offers no way to make one.
func asleep(t *testing.T, at time.Time, d time.Duration) time.Time {
	t.Helper()
	later := at.Add(d)
	(*struct {
		wall      uint64
		monotonic int64
		loc       *time.Location
	})(unsafe.Pointer(&later)).monotonic -= int64(d)
	if later.Sub(at) != 0 || later.Round(0).Sub(at.Round(0)) != d {
		t.Fatalf("the clocks do not part: %v, %v", later.Sub(at), later.Round(0).Sub(at.Round(0)))
	}
	return later
}

// The silence goes on while the computer sleeps, and while its clock is set back:
// of the two clocks the one that has gone further counts.
func TestSilenceCountsTheLargerClock(t *testing.T) {
	t.Parallel()
	now := time.Now()
	m := &mark{contact: now, seen: now, spent: time.Hour}
	for what, c := range map[string]struct {
		at   time.Time
		want time.Duration
	}{
		"awake":              {now.Add(10 * time.Hour), 11 * time.Hour},
		"asleep":             {asleep(t, now, 10*time.Hour), 11 * time.Hour},
		"asleep and awake":   {asleep(t, now, 10*time.Hour).Add(time.Hour), 12 * time.Hour},
		"the clock set back": {asleep(t, now, -10*time.Hour).Add(time.Hour), 2 * time.Hour},
		"both set back":      {now.Add(-time.Hour), time.Hour},
	} {
		if got := m.silent(c.at); got != c.want {
			t.Errorf("%s: silent for %v, want %v", what, got, c.want)
		}
	}
	var never *mark
	if never.silent(now) != silentForEver {
		t.Error("without a word ever, the silence has an end")
	}
}

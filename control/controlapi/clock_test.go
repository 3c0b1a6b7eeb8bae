package controlapi

import (
	"testing"
	"time"
)

// A Date tells no more than whole seconds, at some time while the answer was on
// its way: what that leaves open counts as no difference.
func TestClockAhead(t *testing.T) {
	t.Parallel()
	at := func(s float64) time.Time {
		return time.Unix(1_800_000_000, 0).Add(time.Duration(s * float64(time.Second)))
	}
	for _, tt := range []struct{ date, asked, answered, ahead float64 }{
		{0, 0, 0.1, 0},
		{0, 0.9, 0.95, 0},
		{0, -4, 0.5, 0},  // a slow answer
		{0, 0.5, 9, 0},   // a slower one
		{5, 0, 1, 4},     // ahead
		{0, 5, 6, -4},    // behind
		{-60, 0, 0, -59}, // far behind
	} {
		if got := ClockAhead(at(tt.date), at(tt.asked), at(tt.answered)); got != time.Duration(tt.ahead*float64(time.Second)) {
			t.Errorf("Date %v between %v and %v: %v ahead, want %v", tt.date, tt.asked, tt.answered, got, tt.ahead)
		}
	}
}

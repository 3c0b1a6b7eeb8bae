package control

import (
	"testing"
	"time"
)

// The limits that people are told of, as numbers: tests that fill them up count by
// the constants themselves, and would not notice one that has grown.
func TestLimitsAreTheOnesPromised(t *testing.T) {
	t.Parallel()
	for what, limit := range map[string][2]time.Duration{
		"proof of who one is, for connecting a computer": {FreshFor, 10 * time.Minute},
		"a session's writes":                             {sessionSlide, 24 * time.Hour},
		"an enrolment":                                   {enrolmentLife, 10 * time.Minute},
		"a browser that is known":                        {KnownLife, 180 * 24 * time.Hour},
	} {
		if limit[0] != limit[1] {
			t.Errorf("%s: %v, want %v", what, limit[0], limit[1])
		}
	}
	if maxSessions != 50 || codeTries != 5 {
		t.Errorf("%d sessions, %d tries for a code; want 50 and 5", maxSessions, codeTries)
	}
}

package agentapi_test

import (
	"testing"
	"time"

	"porchlight/agent/agentapi"
)

func TestUntilWords(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", 3600)
	now := time.Date(2026, 11, 22, 14, 5, 0, 0, zone) // a Sunday
	for at, want := range map[string]string{
		"2026-11-22T18:00:00+01:00": "today at 18:00",
		"2026-11-22T17:00:00Z":      "today at 18:00",
		"2026-11-22T23:59:59+01:00": "the end of today",
		"2026-11-23T00:00:00+01:00": "the end of today",
		"2026-11-22T09:00:00+01:00": "today at 09:00",
		"2026-11-23T08:30:00+01:00": "tomorrow at 08:30",
		"2026-11-24T00:00:00+01:00": "tomorrow",
		"2026-11-28T23:59:59+01:00": "Saturday",
		"2026-11-28T12:00:00+01:00": "Saturday at 12:00",
		"2026-11-29T23:59:59+01:00": "29 November",
		"2026-11-20T23:59:59+01:00": "20 November",
		"2027-01-31T18:00:00+01:00": "31 January 2027 at 18:00",
		"2027-01-01T00:00:00+01:00": "31 December",
	} {
		moment, err := time.Parse(time.RFC3339, at)
		if got := agentapi.UntilWords(moment, now); err != nil || got != want {
			t.Errorf("%s: %q, want %q", at, got, want)
		}
	}
}

func TestCheckedUntil(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 14, 5, 0, 1, time.UTC)
	for text, want := range map[string]string{
		"": "", "never": "never", "90s": "2026-11-22T14:06:31Z", "2h": "2026-11-22T16:05:01Z", "7d": "2026-11-29T14:05:01Z", "1w": "2026-11-29T14:05:01Z",
		"2030-01-31":                "2030-01-31T23:59:59Z",
		"2030-01-31T18:00:00+01:00": "2030-01-31T17:00:00Z",
		"2030-01-31T18:00":          "2030-01-31T18:00:00Z",
		"today":                     "2026-11-22T23:59:59Z",
		"18:00":                     "2026-11-22T18:00:00Z",
		"14:06":                     "2026-11-22T14:06:00Z",
		"14:05":                     "2026-11-23T14:05:00Z",
		"09:30":                     "2026-11-23T09:30:00Z",
	} {
		if got, err := agentapi.CheckedUntil(text, now); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"0", "0d", "-1h", "d", "1.5d", "-1d", "99999d", "2562047h48m", "tomorrow", "Today", "24:00", "18:60", "18", "6pm", "2030-01-31T", "Never", " never", "2030-02-31", "1y", "5", "w", "0w", "-1w", "99999999999w"} {
		if got, err := agentapi.CheckedUntil(text, now); agentapi.CodeOf(err) != agentapi.CodeInvalid {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// A day ends with its last second, also where clocks are put on or back at midnight.
func TestADayEndsWhereClocksChangeAtMidnight(t *testing.T) {
	t.Parallel()
	for day, want := range map[string][2]string{
		"2026-03-28": {"Asia/Beirut", "2026-03-28T21:59:59Z"},
		"2026-03-29": {"Asia/Beirut", "2026-03-29T20:59:59Z"},  // begins at 01:00
		"2026-10-29": {"Africa/Cairo", "2026-10-29T21:59:59Z"}, // 23:00 to 24:00 comes twice
		"2026-09-05": {"America/Santiago", "2026-09-06T03:59:59Z"},
		"2026-09-06": {"America/Santiago", "2026-09-07T02:59:59Z"}, // begins at 01:00
	} {
		zone, err := time.LoadLocation(want[0])
		if err != nil {
			t.Skip(err)
		}
		now := time.Date(2026, 1, 1, 12, 0, 0, 0, zone)
		if got, err := agentapi.CheckedUntil(day, now); err != nil || got != want[1] {
			t.Errorf("%s in %s ends at %q, %v; want %q", day, want[0], got, err, want[1])
		}
	}
}

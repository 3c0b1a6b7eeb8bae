package agentapi

import (
	"strconv"
	"strings"
	"time"

	"porchlight/internal/words"
)

// CheckedUntil is an Until as it is sent on: empty, UntilNever, or an RFC 3339 time. It
// also takes what people type: a time where now is, of its day (18:00, the next one) or of
// another (2030-01-31T18:00), a day or UntilToday, which end where now is, and a time from
// now (90s, 2h, 7d, 1w). The error is a sentence.
func CheckedUntil(text string, now time.Time) (string, error) {
	if text == "" || text == UntilNever {
		return text, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.UTC().Format(time.RFC3339), nil
	}
	if at, ok := clockTime(text, now); ok {
		return at.UTC().Format(time.RFC3339), nil
	}
	if text == UntilToday {
		text = now.Format(time.DateOnly)
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return lastSecond(day, now.Location()).UTC().Format(time.RFC3339), nil
	}
	in, err := parseSpan(text)
	if err != nil || in <= 0 || in > maxSpan {
		return "", Errorf(CodeInvalid, "The end %q is not understood. Write a time like 18:00 or 2030-01-31T18:00, a day like 2030-01-31 or today, a time from now like 2h, 7d or 1w, or never.", shortened(text))
	}
	return now.Add(in + time.Second - 1).UTC().Format(time.RFC3339), nil // whole seconds, and no less
}

// clockTime reads a time of day where now is: of a day that is given, or the next one.
func clockTime(text string, now time.Time) (time.Time, bool) {
	if at, err := time.ParseInLocation("2006-01-02T15:04", text, now.Location()); err == nil {
		return at, true
	}
	clock, err := time.Parse("15:04", text)
	if err != nil {
		return time.Time{}, false
	}
	on := func(day int) time.Time {
		return time.Date(now.Year(), now.Month(), day, clock.Hour(), clock.Minute(), 0, 0, now.Location())
	}
	if at := on(now.Day()); at.After(now) {
		return at, true
	}
	return on(now.Day() + 1), true
}

// lastSecond ends a day where clocks are as in zone. Some are put on at midnight, which is
// then none, and some back, so that the last hour comes twice.
func lastSecond(day time.Time, zone *time.Location) time.Time {
	year, month, d := day.Date()
	last := time.Date(year, month, d, 23, 59, 59, 0, zone)
	if midnight := time.Date(year, month, d+1, 0, 0, 0, 0, zone); midnight.After(last) {
		last = midnight.Add(-time.Second)
	}
	return last
}

// maxSpan keeps the sum in range; what a share may last is the control plane's business.
const maxSpan = 100 * 366 * 24 * time.Hour

func parseSpan(text string) (time.Duration, error) {
	const day = 24 * time.Hour
	for suffix, unit := range map[string]time.Duration{"d": day, "w": 7 * day} {
		if number, ok := strings.CutSuffix(text, suffix); ok {
			n, err := strconv.ParseUint(number, 10, 64)
			n = min(n, uint64(maxSpan/unit)+1)
			return time.Duration(n) * unit, err
		}
	}
	return time.ParseDuration(text)
}

func shortened(text string) string {
	const longest = 40
	if short := []rune(text); len(short) > longest {
		return string(short[:longest]) + "…"
	}
	return text
}

// UntilWords says when something ends in plain words, as seen at now: the time today and
// tomorrow, the weekday within six days, then the day. Midnight ends the day before.
func UntilWords(at, now time.Time) string {
	at, now = at.In(now.Location()), now.Round(0)
	if last := at.Add(-time.Second); last.YearDay() != at.YearDay() {
		at = last
	}
	clock := at.Format(" at 15:04")
	if at.Hour() == 23 && at.Minute() == 59 {
		clock = ""
	}
	midnight := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }
	switch days := int(midnight(at).Sub(midnight(now)).Hours() / 24); {
	case days == 0 && clock != "":
		return "today" + clock
	case days == 0:
		return "the end of today"
	case days == 1:
		return "tomorrow" + clock
	case days > 1 && days <= 6:
		return at.Format("Monday") + clock
	case at.Year() == now.Year():
		return at.Format("2 January") + clock
	}
	return at.Format("2 January 2006") + clock
}

// LastDay says when something ended, in words that stay true: the day, with the year
// where it is another, and the time where it was not the end of the day.
func LastDay(at, now time.Time) any {
	at, now = at.Local(), now.Local()
	if last := at.Add(-time.Second); last.Day() != at.Day() { // midnight is the end of the day before
		at = last
	}
	day := words.Day{Day: at, Year: at.Year() != now.Year()}
	if at.Hour() != 23 || at.Minute() != 59 {
		return words.Of("%[1]s on %[2]s", at.Format("15:04"), day)
	}
	return day
}

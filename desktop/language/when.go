package language

import (
	"slices"
	"time"

	textlang "golang.org/x/text/language"

	"porchlight/internal/words"
)

// dayOf is a day as one says it: today and tomorrow by name, then the weekday within
// six days, then the date, with the year where it is another.
func dayOf(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	days := daysBetween(now, t)
	switch {
	case days == 0:
		return Say("today")
	case days == 1:
		return Say("tomorrow")
	case days == -1:
		return Say("yesterday")
	case days > 1 && days <= 6:
		return Spoken().Tell(weekdays[t.Weekday()])
	case t.Year() != now.Year():
		return Spoken().DayOfYear(t)
	}
	return Spoken().Day(t)
}

func daysBetween(from, to time.Time) int {
	midnight := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }
	return int(midnight(to).Sub(midnight(from)) / (24 * time.Hour))
}

// weekdays are the names of the days, from time.Sunday on.
var weekdays = [...]words.Sentence{
	words.Of("Sunday"), words.Of("Monday"), words.Of("Tuesday"), words.Of("Wednesday"), words.Of("Thursday"), words.Of("Friday"), words.Of("Saturday"),
}

// LastDayOf is the day a share that ends at t can still be used: one that ends at
// midnight ends with the day before.
func LastDayOf(t, now time.Time) string { return dayOf(t.Add(-time.Second), now) }

// EndOf is LastDayOf with the time of day, where it is not the end of that day.
func EndOf(t, now time.Time) string {
	if last := t.Local().Add(time.Minute); last.Hour() == 0 && last.Minute() <= 1 {
		return LastDayOf(t, now)
	}
	return MomentOf(t, now)
}

// MomentOf is a time of day, with its day where that is not today.
func MomentOf(t, now time.Time) string {
	if daysBetween(now.Local(), t.Local()) == 0 {
		return clockOf(t)
	}
	return Say("%[1]s, %[2]s", dayOf(t, now), clockOf(t))
}

// clockOf is a time of day as the desktop's locale writes it.
func clockOf(t time.Time) string {
	if twelveHours() {
		return t.Local().Format("3:04 PM")
	}
	return t.Local().Format("15:04")
}

// twelve are the regions that count the day's hours twice, most of those of CLDR.
var twelve = []string{"AU", "BD", "CA", "CO", "EG", "IN", "KE", "KR", "MX", "MY", "NZ", "PH", "PK", "SA", "SG", "US", "ZA"}

func twelveHours() bool {
	tag, err := textlang.Parse(words.Locale())
	if err != nil {
		return false
	}
	region, sure := tag.Region()
	return sure >= textlang.High && slices.Contains(twelve, region.String())
}

// EndOfDay is the midnight that ends the day which is so many days from now.
func EndOfDay(now time.Time, days int) time.Time {
	now = now.Local()
	return time.Date(now.Year(), now.Month(), now.Day()+days+1, 0, 0, 0, 0, now.Location())
}

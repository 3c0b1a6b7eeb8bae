package control

import (
	"maps"
	"slices"
	"time"

	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// Shares that end. An end belongs to one app of one person and stands in the
// person's row. When it comes, the app leaves the row's apps, as if it had been
// withdrawn, so that agents that know nothing of ends see it too; the row keeps when
// that was, and the app passwords, which open nothing now.
//
// Nothing is lost when the clock that ended a share was ahead: once it is right
// again, the app is back. So what a share leaves behind is deleted only when the app
// is given again, and otherwise after endedFor.

const (
	// endedFor is how long a row says that a share has ended.
	endedFor = 30 * 24 * time.Hour
	// endedAhead is by how much a clock was ahead before what it ended comes back:
	// the clocks of several nodes may differ a little.
	endedAhead = controlapi.ClockSkew
)

// until is what somebody asks of the end of an app.
type until struct {
	keep bool      // as it is
	at   time.Time // zero for never
	// program is set where a program asks: it knows no end, so it takes none away either.
	program bool
}

// byProgram is what every program asks of an end.
var byProgram = until{keep: true, program: true}

// parseUntil reads Invite.Until and SetAccess.Until.
func parseUntil(text string, now time.Time) (until, error) {
	switch text {
	case "":
		return until{keep: true}, nil
	case controlapi.UntilNever:
		return until{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	at = at.UTC().Truncate(time.Second)
	switch {
	case err != nil:
		return until{}, refuse(controlapi.CodeInvalid, "The end of a share is written like 2030-01-31T18:00:00Z.")
	case !at.After(now):
		return until{}, controlapi.Refuse(controlapi.CodeInvalid, words.Of("The end of a share has to be later than now. The server's clock says %[1]s on %[2]s (UTC).",
			now.UTC().Format("15:04"), words.Day{Day: now.UTC(), Year: true}))
	case at.Sub(now) > controlapi.MaxUntil:
		return until{}, refuse(controlapi.CodeInvalid, "A share can end in ten years at the latest. Give it without an end instead.")
	}
	return until{at: at}, nil
}

// ending is the row with that end for these of its apps.
func (p person) ending(apps []string, u until) person {
	if u.keep || len(apps) == 0 {
		return p
	}
	p.Until = maps.Clone(p.Until)
	for _, id := range apps {
		if u.at.IsZero() {
			delete(p.Until, id)
			continue
		}
		if p.Until == nil {
			p.Until = map[string]time.Time{}
		}
		p.Until[id] = u.at
	}
	return p
}

// asOf is the row as it is at a moment.
func (p person) asOf(now time.Time) person {
	p.ByGroup = dropped(p.ByGroup, func(id string) bool { end := p.ByGroup[id]; return !end.IsZero() && !now.Before(end) })
	if len(p.Until) == 0 && len(p.Ended) == 0 {
		return p
	}
	p.Until, p.Ended = cloned(p.Until), cloned(p.Ended)
	for id, end := range p.Until {
		if !now.Before(end) {
			p.Apps = withoutApps(p.Apps, func(other string) bool { return other == id })
			p.Ended[id] = end
			delete(p.Until, id)
		}
	}
	for id, end := range p.Ended {
		if end.Sub(now) > endedAhead {
			p.Apps = withApps(p.Apps, []string{id})
			p.Until[id] = end
			delete(p.Ended, id)
		}
	}
	return p
}

// keptFrom is the row after ev with the ends that outlive a program's taking away: giving
// the app again before then, a program gives it until then and no longer. Whatever the
// owner does with an app settles it.
func (p person) keptFrom(before person, ev personEvent, apps []string, u until, now time.Time) person {
	about := func(id string) bool { return ev == personRemoved || ev == personUndone || slices.Contains(apps, id) }
	kept := cloned(before.Kept)
	switch ev {
	case personWithdrawn, personRemoved, personUndone:
		maps.DeleteFunc(kept, func(id string, _ time.Time) bool { return about(id) && !u.program })
		for id, end := range before.Until {
			if u.program && about(id) {
				kept[id] = end
			}
		}
	case personInvited, personGiven:
		for id, end := range kept {
			if u.program && about(id) && now.Before(end) {
				p = p.ending([]string{id}, until{at: end})
			}
		}
		maps.DeleteFunc(kept, func(id string, _ time.Time) bool { return about(id) })
	default:
		return p
	}
	maps.DeleteFunc(kept, func(_ string, end time.Time) bool { return now.Sub(end) >= endedFor })
	p.Kept = kept
	return p
}

// dropped is ends without those of some apps.
func dropped(ends map[string]time.Time, which func(id string) bool) map[string]time.Time {
	ends = maps.Clone(ends)
	maps.DeleteFunc(ends, func(id string, _ time.Time) bool { return which(id) })
	return ends
}

func cloned(m map[string]time.Time) map[string]time.Time {
	if m == nil {
		return map[string]time.Time{}
	}
	return maps.Clone(m)
}

func sameEnds(a, b map[string]time.Time) bool { return maps.EqualFunc(a, b, time.Time.Equal) }

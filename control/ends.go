package control

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
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

	// How long runEnds waits at most: timers stop while a computer sleeps, clocks
	// are set, and other nodes give ends, which they look after themselves while they
	// live.
	endsWithin = 15 * time.Second
	// endsWhole is how often more than the first of the ends is looked at: what a clock
	// that was ahead has ended shows only there.
	endsWhole = 10 * time.Minute
	// endsAgain is the wait after a try that failed.
	endsAgain = 5 * time.Second
	// endsBatch bounds the ends of one look.
	endsBatch = 256
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

// indexEnds has the indexes of ends follow a row.
func (t *txn) indexEnds(computerID string, before, after person) {
	account := before.AccountID
	if account == "" {
		account = after.AccountID
	}
	index := func(prefix string, before, after map[string]time.Time) {
		for id, at := range before {
			if !after[id].Equal(at) {
				t.delete(keyEnd(prefix, at, computerID, account, id))
			}
		}
		for id, at := range after {
			if !before[id].Equal(at) {
				t.ends = true
				t.put(keyEnd(prefix, at, computerID, account, id), struct{}{}, 0)
			}
		}
	}
	index(keyEnds, before.Until, after.Until)
	index(keyEnded, before.Ended, after.Ended)
}

// anEnd is one row of an index of ends.
type anEnd struct {
	key                    string
	at                     time.Time
	computer, account, app string
}

// endsAfter reads the ends below a prefix that come after a moment, the earliest
// first, at most so many; a zero moment is the beginning. Rows that cannot be read as
// ends are left out, and odd says so: they are in the way of the ends after them.
func endsAfter(tx *txn, prefix string, after time.Time, most int) (ends []anEnd, odd bool) {
	from := ""
	if !after.IsZero() {
		from = prefix + after.UTC().Format(endTime) + "0" // follows the slash
	}
	for _, it := range tx.scan(prefix, from, most) {
		parts := strings.Split(it.Key[len(prefix):], "/")
		at, err := time.Parse(endTime, parts[0])
		if err != nil || len(parts) != 4 {
			odd = true
			continue
		}
		ends = append(ends, anEnd{it.Key, at, parts[1], parts[2], parts[3]})
	}
	return ends, odd
}

// runEnds takes from the rows what has ended, until ctx is done.
func (s *People) runEnds(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last, whole time.Time // the last look, and the last that saw more than the first ends
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		case <-s.endsWake:
		}
		now := s.now().Round(0) // as it is set, not as it goes on
		if now.Before(last) {
			whole = time.Time{} // set back: it may have ended what goes on
		}
		last = now
		due, wait, err := s.firstEnds(ctx, now)
		if err == nil && (due || now.Sub(whole) >= endsWhole) {
			if wait, err = s.endDue(ctx); err == nil {
				whole = now
			}
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("ending shares failed; it is tried again", "err", err)
			wait = endsAgain
		}
		timer.Stop()
		if wait > 0 {
			timer.Reset(wait)
		}
	}
}

// firstEnds says, of the first rows of both indexes and by one statement, whether something
// is due or cannot be told from them, and otherwise when to look again. It does not see
// what a clock that was ahead has ended.
func (s *People) firstEnds(ctx context.Context, now time.Time) (due bool, wait time.Duration, err error) {
	look, err := viewedOf(ctx, s.core, kv.Rows{First: []string{keyEnds, keyEnded}}, func(tx *txn) (endsLook, error) {
		return s.looked(tx, now, 1), nil
	})
	return len(look.due) > 0 || look.odd, look.wait, err
}

// endsLook is what the first rows of both indexes say.
type endsLook struct {
	due  []anEnd
	odd  bool          // some cannot be read
	wait time.Duration // until the next look; 0 for when an end is given
}

// looked reads the first rows of both indexes, at most so many of each.
func (s *People) looked(tx *txn, now time.Time, most int) (look endsLook) {
	coming, odd := endsAfter(tx, keyEnds, time.Time{}, most)
	old, oddOld := endsAfter(tx, keyEnded, time.Time{}, most)
	look.odd = odd || oddOld
	if s.cfg.SharedStore || len(old) > 0 || look.odd {
		look.wait = endsWithin
	}
	for _, e := range coming {
		if now.Before(e.at) {
			look.wait = min(e.at.Sub(now), endsWithin)
			break
		}
		look.due = append(look.due, e)
	}
	for _, e := range old {
		if now.Sub(e.at) >= endedFor {
			look.due = append(look.due, e)
		}
	}
	return look
}

// endDue ends what is to end, brings back what a clock that was ahead had ended, and
// forgets what ended long ago. It says when to look again; 0 for when an end is given.
func (s *People) endDue(ctx context.Context) (wait time.Duration, err error) {
	for {
		look, err := s.lookAtEnds(ctx)
		if err != nil || len(look.due) == 0 {
			return look.wait, err
		}
		for _, e := range look.due {
			if err := s.update(ctx, func(tx *txn) error { tx.end(e); return nil }); err != nil {
				return 0, err
			}
		}
	}
}

func (s *People) lookAtEnds(ctx context.Context) (endsLook, error) {
	return viewed(ctx, s.core, func(tx *txn) (endsLook, error) {
		look := s.looked(tx, tx.now, endsBatch)
		ahead, _ := endsAfter(tx, keyEnded, tx.now.Add(endedAhead), endsBatch)
		look.due = append(look.due, ahead...)
		return look, nil
	})
}

// end carries out what an index says is to be done with one app of a person, and
// drops the line of the index where the row says otherwise.
func (t *txn) end(e anEnd) {
	if _, found := get[struct{}](t, e.key); !found {
		return // changed since the look: the row says what holds now
	}
	before, found := get[person](t, keyPerson(e.computer, e.account))
	if !found {
		t.delete(e.key)
		return
	}
	p := before
	if _, dated := p.Until[e.app]; !dated && strings.HasPrefix(e.key, keyEnds) && slices.Contains(p.Apps, e.app) {
		// A node of an earlier version wrote the row and left the end out.
		p = p.ending([]string{e.app}, until{at: e.at})
	}
	p = p.asOf(t.now)
	if ended, ok := p.Ended[e.app]; ok && t.now.Sub(ended) >= endedFor {
		p.Ended = dropped(p.Ended, func(id string) bool { return id == e.app })
		t.endWith(personWithdrawn, e.computer, e.account, []string{e.app})
	}
	if !slices.Equal(p.Apps, before.Apps) || !sameEnds(p.Until, before.Until) || !sameEnds(p.Ended, before.Ended) {
		t.putPerson(e.computer, before, p)
	}
	if !p.Until[e.app].Equal(e.at) && strings.HasPrefix(e.key, keyEnds) || !p.Ended[e.app].Equal(e.at) && strings.HasPrefix(e.key, keyEnded) {
		t.delete(e.key)
	}
}

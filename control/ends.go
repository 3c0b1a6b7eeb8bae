package control

import (
	"context"
	"slices"
	"strings"
	"time"

	"porchlight/control/kv"
)

// runEnds carries the ends of shares (until.go) out.
const (
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
			if err := s.update(ctx, func(tx *txn) error { tx.carryOut(e); return nil }); err != nil {
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

// carryOut does what an index says is to be done with one app of a person, and
// drops the line of the index where the row says otherwise.
func (t *txn) carryOut(e anEnd) {
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

package access

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// Shares that end. The snapshot says when, the control plane's clock (clock.go) says
// that it is time, and Decide asks both at each request. What is open is closed by
// Run, at the moment, whether or not the control plane answers. Nothing is written
// down by which a share would stay ended: only the control plane ends one for good.

// Ended is an app of a person whose end has come.
type Ended struct {
	store.Share
	Email  string
	Closed int // open connections that were closed
	// Doubtful is true where only a clock says so that may be wrong: this computer's,
	// before the control plane has answered, or one that was set far ahead.
	Doubtful bool
}

// maxEnded bounds what waits to be told.
const maxEnded = 1000

// ends is what has ended by the snapshot in force. Access.writing guards it.
type ends struct {
	ended map[store.Share]bool
	fresh []Ended              // to be told, oldest first
	saved map[store.Share]bool // over, when the store was told last
	// looked is up to when ends of groups were looked for.
	looked time.Time
}

// hasEnded says whether the end of an app of p has come.
func (p *person) hasEnded(appID string, clock func() (now, least time.Time)) bool {
	end, ends := p.Until[appID]
	if !ends {
		return false
	}
	now, _ := clock()
	return !now.Before(end)
}

// EndOf is when an app ends for whoever may open it now; false where it does not.
func (a *Access) EndOf(id Identity, appID string) (end time.Time, ends bool) {
	p := a.state.Load().people[id.AccountID]
	if p == nil || p.Role == controlapi.RoleOwner {
		return time.Time{}, false
	}
	end = p.endOf(appID)
	return end, !end.IsZero()
}

// endOf is when an app ends for p, zero for never: given by themselves and by a group, it
// is open until the later end.
func (p *person) endOf(appID string) time.Time {
	end, byGroup := p.byGroup[appID]
	own := p.Until[appID]
	switch {
	case !byGroup:
		return own
	case !p.opens[appID]:
		return end
	case own.IsZero() || end.IsZero():
		return time.Time{}
	}
	return later(own, end)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// AsNow is a person's row as it is now: what has ended is none of their apps, and what a
// group opens is one.
func (a *Access) AsNow(row controlapi.Person) controlapi.Person {
	now, _ := a.clock.time()
	return a.withGroups(withoutEnded(row, now), now)
}

func withoutEnded(row controlapi.Person, now time.Time) controlapi.Person {
	if len(row.Until) == 0 {
		return row
	}
	until, ended := map[string]time.Time{}, map[string]time.Time{}
	maps.Copy(ended, row.Ended)
	for id, end := range row.Until {
		if now.Before(end) {
			until[id] = end
		} else {
			ended[id] = end
		}
	}
	row.Apps = slices.DeleteFunc(slices.Clone(row.Apps), func(id string) bool { return !ended[id].IsZero() })
	row.Until, row.Ended = until, ended
	return row
}

// AwaitEnds waits until the snapshot has the ends that a row says, or until ctx ends: from
// then on they come without the control plane.
func (a *Access) AwaitEnds(ctx context.Context, row controlapi.Person) {
	a.await(ctx, func(st *state) bool {
		p := st.people[row.AccountID]
		return p != nil && maps.EqualFunc(p.Until, row.Until, time.Time.Equal)
	})
}

// ControlTime is what the control plane's clock shows, as far as it is known here.
func (a *Access) ControlTime() time.Time {
	now, _ := a.clock.time()
	return now
}

// ClockAhead is by how much this computer's clock is ahead of the control plane's, where
// there is any share that ends; 0 where that is not known.
func (a *Access) ClockAhead() time.Duration {
	if !a.state.Load().ends {
		return 0
	}
	return max(0, a.clock.last.Load().ahead)
}

// Over lists what has ended, in order.
func (a *Access) Over() []store.Share {
	now, _ := a.clock.time()
	return slices.SortedFunc(maps.Keys(a.state.Load().ended(now)), func(x, y store.Share) int {
		return cmp.Or(cmp.Compare(x.AccountID, y.AccountID), cmp.Compare(x.AppID, y.AppID), x.Until.Compare(y.Until))
	})
}

// ended is what has ended of what a snapshot says.
func (st *state) ended(now time.Time) map[store.Share]bool {
	out := map[store.Share]bool{}
	if !st.ends {
		return out
	}
	for _, p := range st.snapshot.People {
		if p.Role == controlapi.RoleOwner || p.Status == controlapi.PersonRemoved {
			continue
		}
		for id, end := range p.Ended {
			out[store.Share{AccountID: p.AccountID, AppID: id, Until: end.UTC()}] = true
		}
		for id, end := range p.Until {
			if !now.Before(end) {
				out[store.Share{AccountID: p.AccountID, AppID: id, Until: end.UTC()}] = true
			}
		}
	}
	return out
}

// loadEnded reads what the owner was told in an earlier run.
func (a *Access) loadEnded() error {
	saved, err := a.store.Ended()
	if err != nil {
		return fmt.Errorf("read which shares have ended: %w", err)
	}
	a.ends.ended = setOf(saved, func(s store.Share) store.Share { return s })
	a.ends.saved = a.ends.ended
	return nil
}

// noteEnds finds what has ended since it was called last, by the state st, before that
// closes it. writing is held.
func (a *Access) noteEnds(st *state) (changed bool) {
	now, least := a.clock.time()
	ended := st.ended(now)
	if changed = !maps.Equal(ended, a.ends.ended); !changed {
		return false
	}
	open := a.live.perShare()
	for s := range ended {
		if !a.ends.ended[s] && len(a.ends.fresh) < maxEnded {
			a.ends.fresh = append(a.ends.fresh, Ended{
				Share: s, Email: st.people[s.AccountID].Email, Doubtful: s.Until.Sub(least) > controlapi.ClockSkew,
				Closed: open[store.Share{AccountID: s.AccountID, AppID: s.AppID}],
			})
		}
	}
	a.ends.ended = ended
	return true
}

// endShares closes what has come to its end, and says how long until the next does.
func (a *Access) endShares() (next time.Duration) {
	a.writing.Lock()
	st := a.state.Load()
	changed := st.received && a.noteEnds(st)
	now, _ := a.clock.time()
	for _, end := range slices.Concat(st.groupEnds(), st.senders.ends()) {
		changed = changed || end.After(a.ends.looked) && !now.Before(end)
	}
	a.ends.looked = now
	a.clock.forgetJump()
	a.writing.Unlock()
	if changed {
		if closed := a.closeRefused(); closed > 0 {
			a.log.Info("shares have ended", "connections_closed", closed)
		}
		a.changes.Raise()
	}
	return a.untilNextEnd()
}

// untilNextEnd is how long until a share ends; an hour where none does sooner.
func (a *Access) untilNextEnd() time.Duration {
	next := time.Hour
	st := a.state.Load()
	if !st.ends {
		return next
	}
	now, _ := a.clock.time()
	ends := slices.Concat(st.groupEnds(), st.senders.ends())
	for _, p := range st.snapshot.People {
		ends = slices.AppendSeq(ends, maps.Values(p.Until))
	}
	for _, end := range ends {
		if left := end.Sub(now); left > 0 {
			next = min(next, left)
		}
	}
	return next + time.Millisecond
}

// TakeEnded calls tell with what has ended since it was called last, if anything. Once
// tell has returned, a restart does not bring it again.
func (a *Access) TakeEnded(tell func([]Ended)) {
	a.writing.Lock()
	fresh, ended := a.ends.fresh, a.ends.ended
	a.ends.fresh = nil
	same := maps.Equal(ended, a.ends.saved)
	a.writing.Unlock()
	if len(fresh) > 0 {
		tell(fresh)
	}
	if same {
		return
	}
	if err := a.store.SaveEnded(slices.Collect(maps.Keys(ended))); err != nil {
		a.log.Error("which shares have ended could not be kept; the owner is told again after a restart", "err", err)
		return
	}
	a.writing.Lock()
	defer a.writing.Unlock()
	a.ends.saved = ended
}

// perShare counts what is open to people, by account and app.
func (l *live) perShare() map[store.Share]int {
	out := map[store.Share]int{}
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.all {
		if !c.closed && !c.rests {
			out[store.Share{AccountID: c.id.AccountID, AppID: c.app}]++
		}
	}
	return out
}

package access

import (
	"fmt"
	"math"
	"time"

	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// The bounds of how long the last snapshot decides without the control plane.
const (
	// maxFailStatic is the most, and what holds unless the owner chose less.
	maxFailStatic = 24 * time.Hour

	// minFailStatic is the least that can be had: a healthy control plane may be heard as
	// seldom as every tunnelwire.BeatAsleep.
	minFailStatic = time.Minute

	// setBack is how much earlier than the end of the last run a run may begin, since
	// clocks are corrected a little. With more nobody can say how long it was off.
	setBack = controlapi.ClockSkew

	// silentForEver is a silence of unknown length.
	silentForEver = time.Duration(math.MaxInt64 / 4)
)

// mark is how long the control plane had been silent at one moment. It is
// immutable.
//
// The silence is counted from mark to mark, and not from the last contact, so that
// setting the clock back gains nobody any time. Between two marks the clock counts
// that went further: the wall clock, which goes on while a laptop sleeps, or the
// monotonic one, which nobody can set.
type mark struct {
	contact time.Time // the last answer of the control plane
	seen    time.Time
	spent   time.Duration // silence from contact to seen
}

// silent is the length of the silence at now.
func (m *mark) silent(now time.Time) time.Duration {
	if m == nil {
		return silentForEver
	}
	return m.spent + max(0, now.Sub(m.seen), now.Round(0).Sub(m.seen.Round(0)))
}

// silentFor is how long nothing has been heard from the control plane.
func (a *Access) silentFor(now time.Time) time.Duration { return a.mark.Load().silent(now) }

// observe moves the mark up to now. Run calls it every minute.
func (a *Access) observe(now time.Time) {
	if m := a.mark.Load(); m != nil {
		// A contact in between wins.
		a.mark.CompareAndSwap(m, &mark{contact: m.contact, seen: now, spent: m.silent(now)})
	}
}

// contacted notes an answer of the control plane. It lists revoked grants only for a
// while: after a longer silence, one may have been revoked and dropped from the list.
// So everything still open by an access token is closed; the tokens have expired.
func (a *Access) contacted(now time.Time) (closed int) {
	before := a.mark.Swap(&mark{contact: now, seen: now})
	if before.silent(now) < controlapi.GrantMemory {
		return 0
	}
	return a.live.close(func(c *Open) bool { return c.id.GrantID != "" })
}

// loadSilence makes the mark that a snapshot confirmed at contact starts with in
// this run.
func (a *Access) loadSilence(contact time.Time) error {
	kept, ok, err := a.store.Silence()
	if err != nil {
		return fmt.Errorf("read how long the control plane was silent: %w", err)
	}
	m := &mark{contact: contact, seen: contact}
	if ok && kept.Contact.Equal(contact) {
		m.seen, m.spent = kept.Seen, kept.Spent
	}
	now := a.now()
	if now.Before(m.seen.Add(-setBack)) {
		a.log.Warn("this computer's clock is earlier than when Porchlight last ran; nobody is let in before the control plane answers", "then", m.seen, "now", now)
		m.spent = silentForEver
	}
	a.mark.Store(&mark{contact: contact, seen: now, spent: m.silent(now)})
	return nil
}

// keepSilence has a restart go on counting where this run is, once the silence
// has grown by at least step since that was kept last.
func (a *Access) keepSilence(step time.Duration) {
	a.writing.Lock()
	defer a.writing.Unlock()
	m := a.mark.Load()
	if m == nil || m.spent < time.Minute || m.spent >= silentForEver || !a.state.Load().received {
		return
	}
	if grown := m.spent - a.silenceSaved; grown >= 0 && grown < step { // less than nothing is another silence
		return
	}
	a.silenceSaved = m.spent
	if err := a.store.SaveSilence(store.Silence{Contact: a.contactSaved, Seen: m.seen, Spent: m.spent}); err != nil {
		a.log.Error("how long the control plane has been silent could not be kept for a restart", "err", err)
	}
}

// failStatic is how long the last snapshot decides without the control plane.
func (a *Access) failStatic() time.Duration {
	if a.settings == nil {
		return maxFailStatic
	}
	return min(max(a.settings.FailStatic(), minFailStatic), maxFailStatic)
}

// AccessUntil is when access ends for everybody unless the control plane answers
// before, to the minute. It is for the time that the control plane is away. ok is
// false when there is no access to end: there never was a snapshot, or it has ended.
func (a *Access) AccessUntil() (until time.Time, ok bool) {
	m := a.mark.Load()
	now := a.now()
	left := a.failStatic() - m.silent(now)
	if !a.state.Load().received || left < 0 {
		return time.Time{}, false
	}
	return now.Add(left).Round(time.Minute).UTC(), true
}

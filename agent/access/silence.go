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
	// DefaultFailStatic is how long known people keep the access of the last
	// snapshot while the control plane is away.
	DefaultFailStatic = 24 * time.Hour

	// MinFailStatic is the least that can be had: a sync that is held in good
	// health says a word only every controlapi.SyncHold.
	MinFailStatic = time.Minute

	// setBack is how much earlier than the last run's end a run may begin, as
	// clocks are corrected a little; more, and nobody knows how long it was off.
	setBack = controlapi.ClockSkew

	// silentForEver is a silence of unknown length.
	silentForEver = time.Duration(math.MaxInt64 / 4)
)

// mark is how long the control plane has been silent, as of one moment. It is
// immutable.
//
// Counting from mark to mark rather than from the last contact is what keeps a
// clock that is set back from giving time: between two marks the larger of the
// two clocks counts, the wall's, which goes on while a laptop sleeps, and the
// monotonic one, which nobody can set.
type mark struct {
	contact time.Time // the last word of the control plane
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

// contacted notes a word from the control plane. After a silence longer than
// revoked grants are told of, one may have been revoked and forgotten meanwhile:
// whatever is still open by an access token, which has expired since, is closed.
func (a *Access) contacted(now time.Time) (closed int) {
	before := a.mark.Swap(&mark{contact: now, seen: now})
	if before.silent(now) < controlapi.GrantMemory {
		return 0
	}
	return a.live.close(func(c *conn) bool { return c.id.GrantID != "" })
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
	if m == nil || m.spent < time.Minute || m.spent >= silentForEver || !a.state.Load().known {
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

// FailStatic is how long the last snapshot decides without the control plane.
func (a *Access) FailStatic() time.Duration {
	if a.settings == nil {
		return DefaultFailStatic
	}
	return min(max(a.settings.FailStatic(), MinFailStatic), DefaultFailStatic)
}

// AccessUntil is when access ends for everybody unless the control plane answers
// before, to the minute. ok is false when there is no access to end: there never
// was a snapshot, or it has ended. Whoever asks knows that the control plane is
// away.
func (a *Access) AccessUntil() (until time.Time, ok bool) {
	m := a.mark.Load()
	now := a.now()
	left := a.FailStatic() - m.silent(now)
	if !a.state.Load().known || left < 0 {
		return time.Time{}, false
	}
	return now.Add(left).Round(time.Minute).UTC(), true
}

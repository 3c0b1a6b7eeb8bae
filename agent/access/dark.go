package access

import (
	"context"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
)

// GoDark closes everything to everybody, the owner included, until LightUp, and
// answers what it closed. Approvals, people and sessions stay; the control plane is
// not told. Access ends first, however long the disk takes. It holds across restarts:
// the record is on the disk before GoDark returns, and when it cannot be written, the
// error says so. Going dark again keeps the first time.
func (a *Access) GoDark() (agentapi.Closed, error) {
	defer a.changes.Raise()
	began := time.Now()
	since := a.now().UTC()
	again := false
	dark := func(next *state) (changed bool) {
		if changed = next.dark == nil; changed {
			next.dark = &since
		}
		again = next.dark != &since
		return changed
	}
	closed := a.swap(dark)
	a.writing.Lock()
	defer a.writing.Unlock()
	closed += a.swap(dark) // a LightUp may have come between
	if err := a.store.SetDark(a.DarkSince()); err != nil {
		a.log.Error("everything is closed, but not over a restart", "err", err)
		return agentapi.Closed{}, agentapi.Errorf(agentapi.CodeInternal,
			"Everything is closed, but Porchlight could not write that to its data directory, so it would open again after a restart. Is the disk full?")
	}
	took := int(time.Since(began).Milliseconds())
	if !again {
		a.activity.Add(agentapi.Activity{At: since, Kind: agentapi.ActivityDark, Owner: true, Closed: closed})
	}
	return agentapi.Closed{OK: true, Closed: closed, Milliseconds: took}, nil
}

// LightUp takes a GoDark back. Nobody has to sign in again for it.
func (a *Access) LightUp() error {
	a.writing.Lock()
	defer a.writing.Unlock()
	if err := a.store.SetDark(nil); err != nil {
		a.log.Error("everything stays closed", "err", err)
		return agentapi.Errorf(agentapi.CodeInternal,
			"Porchlight could not write to its data directory, so everything stays closed. Is the disk full?")
	}
	was := a.DarkSince()
	a.swap(func(next *state) (changed bool) { next.dark = nil; return true })
	if was != nil {
		a.activity.Add(agentapi.Activity{Kind: agentapi.ActivityLight, Owner: true})
	}
	a.changes.Raise()
	return nil
}

// UndoOf is how to take back that everything was closed, which a line of activity is
// about, while it is.
func (a *Access) UndoOf(line agentapi.Activity) func(context.Context) error {
	if !line.Owner || line.Kind != agentapi.ActivityDark || a.DarkSince() == nil {
		return nil
	}
	return func(context.Context) error { return a.LightUp() }
}

// DarkSince is when the owner closed everything; nil when they have not.
func (a *Access) DarkSince() *time.Time { return a.state.Load().dark }

// withoutTime returns d without its time, so that equal records are equal map keys.
func withoutTime(d store.DenyRecord) store.DenyRecord {
	d.At = time.Time{}
	return d
}

package people

import (
	"context"
	"slices"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// What the owner takes away can be held: access is closed here and the change is
// written down, as always, but the control plane is told a little later. If the owner
// takes it back before, nothing has happened there: sessions, role and apps are as
// they were, and nobody is mailed. That a change is held is kept in memory only: after
// a crash the change is carried out, and never forgotten.

// finishIn is how long the control plane is waited for, when the agent stops, to
// be told of what was held.
const finishIn = time.Second

// holdFor checks how long a change is to be held. Only the owner may hold: what a
// program takes away is told to the control plane at once, and to the owner by a
// notice.
func holdFor(by Actor, seconds int) (time.Duration, error) {
	const most = int(agentapi.MaxHold / time.Second)
	switch {
	case seconds < 0 || seconds > most:
		return 0, agentapi.Errorf(agentapi.CodeInvalid, "A change can be held for at most %d seconds.", most)
	case !by.Owner:
		return 0, nil
	}
	return time.Duration(seconds) * time.Second, nil
}

// held reports whether c waits for its moment to be over. mu is held.
func (c pending) held() bool { return !c.heldUntil.IsZero() }

// TakeBack carries out POST /owner/people/undo: what was taken away and is still
// held is given back, at once and without a network. An empty App is the removal
// of the person.
func (p *People) TakeBack(h agentapi.HeldChange) (agentapi.PersonChanged, error) {
	c, ok := p.changeOf(h)
	if !ok {
		return agentapi.PersonChanged{}, agentapi.NoAppCalled(h.App)
	}
	found, err := p.takeBack(c)
	switch {
	case err != nil:
		return agentapi.PersonChanged{}, err
	case !found && h.App != "":
		return agentapi.PersonChanged{}, agentapi.Errorf(agentapi.CodeConflict, "It is too late to undo that. Switch %q on again for them instead.", h.App)
	case !found:
		return agentapi.PersonChanged{}, agentapi.Errorf(agentapi.CodeConflict, "It is too late to undo that. Invite them again to let them in.")
	}
	p.happenedRestored(c)
	return p.asKnown(h.AccountID), nil
}

// changeOf is the change that is held by that name; false where it is of an app that is gone.
func (p *People) changeOf(h agentapi.HeldChange) (c store.PendingChange, ok bool) {
	c.AccountID = h.AccountID
	if h.App == "" {
		return c, true
	}
	app, ok := p.cfg.Apps.ByLabel(h.App)
	c.AppID = app.ID
	return c, ok
}

// happenedRestored writes down that the owner took back what was held.
func (p *People) happenedRestored(c store.PendingChange) {
	p.happened(agentapi.Activity{Kind: agentapi.ActivityRestored, Owner: true}, p.asKnownHere(c.AccountID), p.namedApps(c.AppID))
}

// takeBack lifts the held change that is like c, and says whether there was one.
func (p *People) takeBack(c store.PendingChange) (found bool, err error) {
	p.mu.Lock()
	for _, kept := range p.pending {
		if kept.held() && kept.Deny() == c.Deny() {
			found = true
			if p.lift(kept); p.pending[kept.ID].held() {
				err = agentapi.Errorf(agentapi.CodeInternal, "Porchlight could not write to its data directory, so nothing was undone. Is the disk full?")
			} else if kept.AppID != "" && !kept.Again {
				p.giveAgain(kept.AccountID, kept.AppID)
			}
		}
	}
	p.mu.Unlock()
	if found {
		p.cfg.Changes.Raise()
	}
	return found, err
}

// asKnown answers with a person as the last snapshot has them.
func (p *People) asKnown(accountID string) agentapi.PersonChanged {
	row, known := p.inSnapshot(accountID)
	if !known { // the row was deleted elsewhere meanwhile
		row = controlapi.Person{AccountID: accountID, Role: controlapi.RoleMember, Status: controlapi.PersonRemoved}
	}
	labels, all, _ := p.labels()
	return agentapi.PersonChanged{OK: true, Person: p.wire(p.takenAway(unconfirmed).without(row), labels, all)}
}

// Settle carries out POST /owner/people/settle: what is held cannot be taken
// back any more, and the control plane is told. An empty AccountID is
// everything. That nothing is held is no error.
func (p *People) Settle(ctx context.Context, h agentapi.HeldChange) error {
	c, ok := p.changeOf(h)
	if !ok {
		return nil // what it was held for went with the app
	}
	if p.release(func(kept pending) bool { return h.AccountID == "" || kept.Deny() == c.Deny() }) {
		p.sendSoon(ctx)
	}
	return nil
}

// release ends the holds for which ends is true, and says whether there were any. It
// is called before somebody is given access: what was taken from them before must not
// reach the control plane after it.
func (p *People) release(ends func(pending) bool) (some bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, c := range p.pending {
		if c.held() && ends(c) {
			c.heldUntil = time.Time{}
			p.pending[id] = c
			some = true
		}
	}
	return some
}

// releaseDue ends the holds whose moment is over and returns how long the next
// one still has; 0 for none.
func (p *People) releaseDue() (next time.Duration) {
	now := p.cfg.Now()
	p.release(func(c pending) bool {
		left := c.heldUntil.Sub(now)
		return left <= 0 || left > agentapi.MaxHold // more than it can be: the clock was set back
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.pending {
		if left := c.heldUntil.Sub(now); c.held() && (next == 0 || left < next) {
			next = left
		}
	}
	return next
}

// finish tells the control plane of what was held, when the agent stops. What it
// does not hear then it hears after the next start.
func (p *People) finish() {
	if !p.release(func(pending) bool { return true }) || p.away() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), finishIn)
	defer cancel()
	if err := p.sendAll(ctx); err != nil {
		p.cfg.Log.Info("the control plane is told after the next start of access that was taken away", "err", err)
	}
}

// givenBack is for an owner who switches an app off for somebody and on again while
// the first is still held: that takes the first back, and needs no control plane.
func (p *People) givenBack(by Actor, req agentapi.AccessRequest) (changed agentapi.PersonChanged, ok bool, err error) {
	app, found := p.cfg.Apps.ByLabel(req.App)
	row, known := p.inSnapshot(req.AccountID)
	had := slices.Contains(row.Apps, app.ID) || p.cfg.Access.OpenedByGroup(req.AccountID, app.ID)
	if !by.Owner || req.Until != "" || !found || !known || !had || row.Status == controlapi.PersonRemoved {
		return changed, false, nil
	}
	c := store.PendingChange{AccountID: req.AccountID, AppID: app.ID}
	if ok, err = p.takeBack(c); !ok || err != nil {
		return changed, ok, err
	}
	p.happenedRestored(c)
	return p.asKnown(req.AccountID), true, nil
}

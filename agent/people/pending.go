package people

import (
	"context"
	"maps"
	"slices"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// pending is access taken away here, from the click until the control plane is
// known to have carried it out.
type pending struct {
	store.PendingChange
	// sentAt is access.Contacts when it was sent.
	sentAt uint64
	// unwritten is true when it could not be stored.
	unwritten bool
	// heldUntil is when the control plane is told at the latest; zero when it
	// is told at once. See hold.go.
	heldUntil time.Time
}

// restore reads what an earlier run left.
func (p *People) restore() error {
	kept, err := p.cfg.Store.Pending()
	if err != nil {
		return err
	}
	for _, c := range kept {
		p.pending[c.ID] = pending{PendingChange: c}
		p.lastID = max(p.lastID, c.ID)
	}
	return nil
}

// takeAway ends access here: what is open is closed when it returns. The control
// plane is to be told, once hold is over. The error says that access may come
// back after a restart; it is closed even then, and never held. The caller has called
// Access.Shut before anything that takes mu, which another change may hold for as long
// as the disk takes.
func (p *People) takeAway(c store.PendingChange, hold time.Duration) (closed int, heldUntil time.Time, err error) {
	c.At, c.Computer = p.cfg.Now().UTC(), p.cfg.Access.Snapshot().Computer.ID
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, twin := range p.pending {
		if twin.Deny() == c.Deny() && !twin.Sent && !twin.unwritten {
			twin.Program = twin.Program && c.Program
			return p.takeAwayAgain(twin, c.At, hold)
		}
	}
	p.lastID++
	c.ID = p.lastID
	if w, ok := c.Withdraws(); ok {
		c.Again = p.cfg.Access.IsWithdrawn(w)
	}
	closed, err = p.cfg.Access.TakeAway(c)
	switch {
	case err != nil:
		p.cfg.Log.Error("access was taken away, but that could not be written down", "err", err)
	case hold > 0:
		heldUntil = c.At.Add(hold)
	}
	p.pending[c.ID] = pending{PendingChange: c, unwritten: err != nil, heldUntil: heldUntil}
	if err == nil && hold == 0 { // one that is held may be taken back
		for _, twin := range p.pending {
			if twin.Sent && twin.Deny() == c.Deny() {
				p.lift(twin) // the new one stands for it: a program may ask without end
			}
		}
	}
	return closed, heldUntil, err
}

// takeAwayAgain is takeAway of what waits to be sent already. A change that is held
// may be held longer, or no more; one that is not held may be on its way. mu is held.
func (p *People) takeAwayAgain(twin pending, at time.Time, hold time.Duration) (closed int, heldUntil time.Time, err error) {
	// Its record stands; this closes what is open, and what an Undo had groups open again.
	closed, err = p.cfg.Access.TakeAway(twin.PendingChange)
	p.pending[twin.ID] = twin
	if !twin.held() {
		return closed, time.Time{}, err
	}
	if hold > 0 && err == nil {
		heldUntil = at.Add(hold)
	}
	twin.heldUntil = heldUntil
	p.pending[twin.ID] = twin
	return closed, heldUntil, err
}

// lift forgets a change, and its deny record unless another change needs it. mu
// is held.
func (p *People) lift(c pending) {
	var err error
	if p.alsoNeeded(c) {
		err = p.cfg.Store.RemovePending(c.ID)
	} else {
		err = p.cfg.Access.GiveBack(c.PendingChange)
	}
	if err != nil {
		p.cfg.Log.Error("a change that was carried out could not be forgotten; it is tried again", "err", err)
		return
	}
	delete(p.pending, c.ID)
}

// alsoNeeded says whether another change needs the deny record of c. mu is held.
func (p *People) alsoNeeded(c pending) bool {
	for id, other := range p.pending {
		if id != c.ID && other.Deny() == c.Deny() {
			return true
		}
	}
	return false
}

// liftGiven lifts what kept an app from a person to whom it has just been given
// again, by their row: all withdrawals sent up to the change with ID upTo. Groups may open
// it again, too, unless it was given until a date: what comes after that is as it was; or was
// withdrawn since.
func (p *People) liftGiven(row controlapi.Person, appIDs []string, upTo uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.pending {
		if c.ID <= upTo && c.Sent && c.AccountID == row.AccountID && c.AppID != "" && slices.Contains(appIDs, c.AppID) {
			p.lift(c)
		}
	}
	p.giveAgain(row.AccountID, slices.DeleteFunc(slices.Clone(appIDs), func(id string) bool {
		return !row.Until[id].IsZero() || p.alsoNeeded(pending{PendingChange: store.PendingChange{AccountID: row.AccountID, AppID: id}})
	})...)
}

// awaitTurn waits for the turn to send changes.
func (p *People) awaitTurn(ctx context.Context) (done func(), err error) {
	select {
	case p.turn <- struct{}{}:
		return func() { <-p.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ours says whether a change is for the control plane that a snapshot is from. A
// change made while this computer was at another one waits until it is back there:
// this one would answer that it knows nobody by the id, which would end the denial.
func (c pending) ours(snapshot controlapi.Snapshot) bool {
	return c.Computer == "" || c.Computer == snapshot.Computer.ID
}

// unsent lists what the control plane has to be told now, in order.
func (p *People) unsent() []pending {
	snapshot := p.cfg.Access.Snapshot()
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []pending
	for _, id := range slices.Sorted(maps.Keys(p.pending)) {
		if c := p.pending[id]; !c.Sent && !c.held() && c.ours(snapshot) {
			out = append(out, c)
		}
	}
	return out
}

// taken is what was taken away here, for lists that do not show it yet.
type taken map[store.DenyRecord]bool

// Which changes a list does not show yet. A list that the control plane has just made
// lacks those that it does not know yet; a list from a snapshot may lack all.
const (
	unsentOnly  = true
	unconfirmed = false
)

func (p *People) takenAway(unsentOnly bool) taken {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := taken{}
	for _, c := range p.pending {
		// One that was sent shows in every answer since; the person may have
		// been given the same again.
		if !c.Sent || !unsentOnly {
			out[c.Deny()] = true
		}
	}
	return out
}

// away says whether the control plane does not answer now.
func (p *People) away() bool { return p.cfg.Away != nil && p.cfg.Away() }

// endedHere says whether something was taken away here, and that written down: what could
// not be is to be asked for again.
func (p *People) endedHere(d store.DenyRecord) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.pending {
		if c.Deny() == d && !c.unwritten {
			return true
		}
	}
	return false
}

func (t taken) without(m controlapi.Person) controlapi.Person {
	if len(t) == 0 || m.Role == controlapi.RoleOwner {
		return m
	}
	if t[store.DenyRecord{AccountID: m.AccountID}] {
		m.Status = controlapi.PersonRemoved
	}
	return without(m, func(id string) bool { return t[store.DenyRecord{AccountID: m.AccountID, AppID: id}] })
}

// without is a row with fewer apps, and without their ends.
func without(m controlapi.Person, gone func(id string) bool) controlapi.Person {
	drop := func(id string, _ time.Time) bool { return gone(id) }
	m.Apps, m.Until, m.Ended = slices.DeleteFunc(slices.Clone(m.Apps), gone), maps.Clone(m.Until), maps.Clone(m.Ended)
	maps.DeleteFunc(m.Until, drop)
	maps.DeleteFunc(m.Ended, drop)
	return m
}

var errUnwritten = agentapi.Errorf(agentapi.CodeInternal,
	"Access is closed now, but Porchlight could not write to its data directory, so it may come back when Porchlight starts again. Is the disk full?")

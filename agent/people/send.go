package people

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"porchlight/control/controlapi"
)

// Telling the control plane what was taken away here, and noticing that it knows.

// flush sends what is to be sent and returns the ID of the last change of which
// it is certain that nothing older is unsent. The caller has the turn.
func (p *People) flush(ctx context.Context) (upTo uint64, err error) {
	p.mu.Lock()
	upTo = p.lastID
	p.mu.Unlock()
	for _, c := range p.unsent() {
		for again := true; again; {
			epoch, err := p.send(ctx, c)
			if err != nil && !definite(err) {
				return 0, err
			}
			if err != nil {
				// The row is gone there. The last snapshot may still have it, so the
				// deny record waits for one without it.
				p.cfg.Log.Warn("the control plane has nothing to take away there", "err", err)
				epoch = math.MaxInt64
			}
			c, again = p.noteSent(c, epoch)
		}
	}
	return upTo, nil
}

// noteSent notes that a change was sent as it was in sent. It returns again as true with
// the change as it is now where it has become the owner's meanwhile: that is to be sent.
func (p *People) noteSent(sent pending, epoch int64) (now pending, again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, still := p.pending[sent.ID]
	if !still || now.Program != sent.Program {
		return now, still
	}
	now.Sent, now.Epoch, now.sentAt = true, epoch, p.cfg.Access.Contacts()
	p.pending[now.ID] = now
	if err := p.cfg.Store.PutPending(now.PendingChange); err != nil {
		p.cfg.Log.Error("could not note that the control plane knows of a change; it is told again after a restart", "err", err)
	}
	return now, false
}

func (p *People) send(ctx context.Context, c pending) (epoch int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	switch {
	case c.GrantID != "":
		return 0, p.cfg.Control.RevokeGrant(ctx, c.GrantID)
	case c.PasswordID != "":
		return 0, p.cfg.Control.RevokePassword(ctx, c.PasswordID)
	}
	// What is given again later brings no certificate back, as it brings no app password back.
	p.cfg.Access.NarrowDevices(c.AccountID, c.AppID)
	if c.AppID != "" {
		_, err := p.cfg.Control.SetAccess(ctx, controlapi.SetAccess{AccountID: c.AccountID, App: c.AppID, Program: c.Program})
		return 0, err
	}
	row, err := p.cfg.Control.Remove(ctx, controlapi.Remove{AccountID: c.AccountID, Program: c.Program, Undo: c.Undo})
	return row.Epoch, err
}

// confirm lifts what the last snapshot shows to be known.
func (p *People) confirm() {
	p.mu.Lock()
	contacts := p.cfg.Access.Contacts()
	snapshot := p.cfg.Access.Snapshot()
	changed := false
	for _, c := range p.pending {
		if c.Sent && c.ours(snapshot) && confirmed(c, snapshot, contacts-c.sentAt) {
			p.lift(c)
			changed = true
		}
	}
	p.mu.Unlock()
	if changed {
		p.cfg.Changes.Raise()
	}
}

// confirmed says whether the control plane has carried a change out, by the last
// snapshot and by how many answers came since the change was sent. After the second
// answer it has in any case, even if the snapshot does not show it: that request began
// after the change. (A withdrawn app may have been given again elsewhere.)
//
// The epoch of a person rises when they are removed, so a snapshot from before the
// removal is never taken for one from after it. An app has no such number, nor has an
// app password: where it is missing, the snapshot may have been made before it was
// given, and the one that gives it may be on its way. After an answer to a request that
// followed, none is.
func confirmed(c pending, snapshot controlapi.Snapshot, answers uint64) bool {
	if answers >= 2 {
		return true
	}
	if c.GrantID != "" {
		return slices.ContainsFunc(snapshot.RevokedGrants, func(g controlapi.RevokedGrant) bool { return g.ID == c.GrantID })
	}
	if c.PasswordID != "" {
		return answers > 0 && !hasPassword(snapshot, c.PasswordID)
	}
	row, known := find(snapshot.People, func(m controlapi.Person) bool { return m.AccountID == c.AccountID })
	if !known {
		return true
	}
	if c.AppID != "" {
		return answers > 0 && !slices.Contains(row.Apps, c.AppID)
	}
	return row.Epoch >= c.Epoch
}

// Run sends what could not be sent at once or was held, lifts deny records, and
// keeps the list of grants. It blocks until ctx ends and returns nil.
//
// An answer of the control plane ends the waiting after a failure. Where that asked to be
// left alone nothing ends it: neither is it told of what is taken away meanwhile, which is
// closed here all the same, nor asked for grants.
func (p *People) Run(ctx context.Context) error {
	if p.cfg.Control == nil {
		<-ctx.Done()
		return nil
	}
	woken, cancelWoken := p.wake.Subscribe()
	defer cancelWoken()
	changed, cancelChanged := p.cfg.Changes.Subscribe()
	defer cancelChanged()
	contacted, cancelContacted := p.cfg.Access.FollowContacts()
	defer cancelContacted()
	contacts, failures := p.cfg.Access.Contacts(), 0
	if err := p.cfg.Access.ForgetWithdrawn(p.cfg.Apps.Has); err != nil {
		p.cfg.Log.Warn("what was withdrawn of apps that are gone is kept", "err", err)
	}
	p.tellEnds() // what ended before Run listened
	retry, due := time.NewTimer(0), time.NewTimer(0)
	defer retry.Stop()
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			p.finish()
			return nil
		case <-woken:
		case <-changed:
			p.tellEnds()
			if p.cfg.Access.Contacts() == contacts {
				continue // something else changed
			}
		case <-contacted:
		case <-retry.C:
		case <-due.C:
		}
		contacts = p.cfg.Access.Contacts()
		due.Stop()
		wait := p.leftAlone() // which may be over during the round that heeds it
		next, err := p.round(ctx)
		if next > 0 {
			due.Reset(next)
		}
		wait = max(wait, p.leftAlone())
		if err == nil && wait == 0 || ctx.Err() != nil {
			failures = 0
			retry.Stop()
			continue
		}
		if err != nil {
			failures++
			wait = max(wait, controlapi.Backoff(failures))
			p.cfg.Log.Warn("the control plane could not be told of a change, or asked for grants", "err", err, "retry_in", wait.Round(time.Millisecond))
		}
		retry.Reset(wait)
	}
}

// round is one turn of Run. It returns how long the next change is still held; 0
// for none.
func (p *People) round(ctx context.Context) (next time.Duration, err error) {
	next = p.releaseDue()
	if p.leftAlone() > 0 {
		p.confirm()
		return next, nil
	}
	err = p.sendAll(ctx)
	p.confirm()
	if p.leftAlone() > 0 { // as that was answered
		return next, err
	}
	asked := p.refreshGrants(ctx)
	if asked == nil {
		asked = p.refreshPasswords(ctx)
	}
	p.obey(asked)
	return next, errors.Join(err, asked)
}

// obey notes that the control plane wants to be left alone, if err says so.
func (p *People) obey(err error) {
	wait, asked := controlapi.Obey(err, 0)
	if !asked {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notBefore = time.Now().Add(wait)
}

// leftAlone is how long the control plane still wants to be left alone; 0 for not.
func (p *People) leftAlone() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, time.Until(p.notBefore))
}

func (p *People) sendAll(ctx context.Context) error {
	if len(p.unsent()) == 0 {
		return nil
	}
	done, err := p.awaitTurn(ctx)
	if err != nil {
		return err
	}
	defer done()
	_, err = p.flush(ctx)
	p.obey(err)
	return err
}

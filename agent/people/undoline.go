package people

import (
	"context"
	"slices"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/control/controlapi"
)

// UndoOf is how to take back what a line of activity says of people, or nil where that
// would not restore exactly what was.
func (p *People) UndoOf(line agentapi.Activity) func(context.Context) error {
	switch {
	case line.Notice > 0 && p.canUndo(line.Notice):
		return func(ctx context.Context) error { return p.Undo(ctx, line.Notice) }
	case line.Notice > 0 || !line.Owner:
		return nil
	}
	switch line.Kind {
	case agentapi.ActivityGroupAdded, agentapi.ActivityGroupRemoved, agentapi.ActivityGroupJoined, agentapi.ActivityGroupLeft,
		agentapi.ActivityGroupGiven, agentapi.ActivityGroupWithdrawn:
		return p.undoOfGroup(line)
	case agentapi.ActivityRemoved, agentapi.ActivityWithdrawn:
		return p.giveBackOf(line)
	case agentapi.ActivityGiven, agentapi.ActivityInvited:
		return p.takeAwayOf(line)
	}
	return nil
}

// giveBackOf is for what was taken away: while it is held nothing has happened yet, and
// an app can be given to somebody active again as they had it.
func (p *People) giveBackOf(line agentapi.Activity) func(context.Context) error {
	if p.holds(line.AccountID, line.App) {
		return func(context.Context) error {
			_, err := p.TakeBack(agentapi.HeldChange{AccountID: line.AccountID, App: line.App})
			return err
		}
	}
	app, live := p.stillLive(line)
	row, known := p.Row(line.AccountID)
	if !live || !known || row.Status != controlapi.PersonActive {
		return nil
	}
	if line.ByGroup == agentapi.ByGroupOnly {
		if !p.cfg.Access.OpenedByGroup(line.AccountID, app.ID) {
			return nil
		}
		return func(context.Context) error { return p.regive(line.AccountID, app.ID) }
	}
	ended := !line.Until.IsZero() && !line.Until.After(p.cfg.Now())
	if line.App == "" || has(row, app) || ended {
		return nil
	}
	again := agentapi.AccessRequest{AccountID: line.AccountID, App: app.Label, Granted: true}
	if !line.Until.IsZero() {
		again.Until = line.Until.UTC().Format(time.RFC3339)
	}
	return func(ctx context.Context) error {
		_, err := p.SetAccess(ctx, Owner, again)
		if err == nil && line.ByGroup == agentapi.ByGroupToo {
			p.giveAgain(line.AccountID, app.ID)
		}
		return err
	}
}

// takeAwayOf is for what was given: an app of somebody who has it as it was given, or an
// invitation that nobody has accepted.
func (p *People) takeAwayOf(line agentapi.Activity) func(context.Context) error {
	app, live := p.stillLive(line)
	row, known := p.Row(line.AccountID)
	if !live || !known || !has(row, app) || !row.Until[app.ID].Equal(line.Until) {
		return nil
	}
	if p.cfg.Access.OpenedByGroup(line.AccountID, app.ID) {
		return nil // to take it away would take it from the group, too
	}
	pending := row.Status == controlapi.PersonPending
	switch {
	case pending != (line.Kind == agentapi.ActivityInvited), !pending && row.Status != controlapi.PersonActive:
		return nil
	case pending && len(row.Apps) == 1:
		return func(ctx context.Context) error { return p.TakeBackInvitation(ctx, line.AccountID) }
	}
	return func(ctx context.Context) error {
		_, err := p.SetAccess(ctx, Owner, agentapi.AccessRequest{AccountID: line.AccountID, App: app.Label})
		return err
	}
}

// stillLive is the app that a line is about, if it still has the label of then.
func (p *People) stillLive(line agentapi.Activity) (engine.App, bool) {
	app, ok := p.cfg.Apps.ByLabel(line.App)
	return app, ok && app.ID != "" && (line.Name == "" || app.Name == line.Name)
}

func has(row controlapi.Person, app engine.App) bool { return slices.Contains(row.Apps, app.ID) }

// holds says whether TakeBack can give back an app, or with no label the whole computer.
func (p *People) holds(accountID, label string) bool {
	c, ok := p.changeOf(agentapi.HeldChange{AccountID: accountID, App: label})
	if !ok {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, kept := range p.pending {
		if kept.held() && kept.Deny() == c.Deny() {
			return true
		}
	}
	return false
}

// canUndo says whether Undo can take back what a notice is about.
func (p *People) canUndo(noticeID uint64) bool {
	_, _, ok, err := p.cfg.Store.UndoOf(noticeID)
	return ok && err == nil
}

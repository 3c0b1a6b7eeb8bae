package ui

import (
	"context"

	"porchlight/agent/agentapi"
)

// People is the area of who may come in, of the remote clients they let in, and
// of who was here.
type People struct{ agent Source }

// NewPeople makes the area.
func NewPeople(agent Source) *People { return &People{agent} }

// List is everybody with a row on this computer, and the labels an invitation
// may hand over. It is asked again when the snapshot's peopleVersion changes.
func (p *People) List() (agentapi.People, error) {
	return ask(p.agent, func(ctx context.Context, g Agent) (agentapi.People, error) { return g.People(ctx) })
}

// Invite sends an invitation naming apps by label.
func (p *People) Invite(email string, apps []string) (agentapi.Invitation, error) {
	return ask(p.agent, func(ctx context.Context, g Agent) (agentapi.Invitation, error) {
		return g.Invite(ctx, agentapi.InviteRequest{Email: email, Apps: apps})
	})
}

// held is how long, in seconds, what the page takes away can be undone at most:
// time enough for a toast that somebody rests on. The page settles it sooner.
const held = 30

// Grant gives one app to one person, or withdraws it, which is held.
func (p *People) Grant(accountID, app string, granted bool) (agentapi.PersonChanged, error) {
	req := agentapi.GrantRequest{AccountID: accountID, App: app, Granted: granted}
	if !granted {
		req.HoldSeconds = held
	}
	return ask(p.agent, func(ctx context.Context, g Agent) (agentapi.PersonChanged, error) { return g.Grant(ctx, req) })
}

// Remove ends a person's access to the whole computer, which is held.
func (p *People) Remove(accountID string) (agentapi.PersonChanged, error) {
	return ask(p.agent, func(ctx context.Context, g Agent) (agentapi.PersonChanged, error) {
		return g.RemoveHeld(ctx, agentapi.RevokeRequest{AccountID: accountID, HoldSeconds: held})
	})
}

// UndoHeld takes a removal back while it is held, or, with a label, that an app
// was withdrawn: all is as before, and nobody is mailed.
func (p *People) UndoHeld(accountID, app string) (agentapi.PersonChanged, error) {
	return ask(p.agent, func(ctx context.Context, g Agent) (agentapi.PersonChanged, error) {
		return g.UndoHeld(ctx, agentapi.HeldChange{AccountID: accountID, App: app})
	})
}

// Settle carries out what is held, now: the page no longer offers to undo it.
func (p *People) Settle(accountID, app string) error {
	return tell(p.agent, func(ctx context.Context, g Agent) error {
		return g.SettleHeld(ctx, agentapi.HeldChange{AccountID: accountID, App: app})
	})
}

// SettleAll carries out everything that is held: no page is left to offer Undo.
func (p *People) SettleAll() error { return p.Settle("", "") }

// Visitors is who has something open now. It is asked again when who is here
// changes in the snapshot.
func (p *People) Visitors() ([]agentapi.Visitor, error) {
	return ask(p.agent, func(ctx context.Context, g Agent) ([]agentapi.Visitor, error) { return g.Visitors(ctx) })
}

// Disconnect closes what one visitor has open, a person in their browsers or,
// with a grant, a remote client. It takes no access away.
func (p *People) Disconnect(accountID, grantID string) (agentapi.Closed, error) {
	return ask(p.agent, func(ctx context.Context, g Agent) (agentapi.Closed, error) {
		return g.DisconnectVisitor(ctx, agentapi.DisconnectRequest{AccountID: accountID, GrantID: grantID})
	})
}

// Undo takes back what a notice tells of.
func (p *People) Undo(notice uint64) error {
	return tell(p.agent, func(ctx context.Context, g Agent) error { return g.UndoNotice(ctx, notice) })
}

// See notes that the owner has looked at the notices up to one and lets them be.
func (p *People) See(notice uint64) error {
	return tell(p.agent, func(ctx context.Context, g Agent) error { return g.SeeNotices(ctx, notice) })
}

// RevokeClient ends an OAuth grant, one of the snapshot's.
func (p *People) RevokeClient(id string) (agentapi.Closed, error) {
	return ask(p.agent, func(ctx context.Context, g Agent) (agentapi.Closed, error) { return g.RevokeGrant(ctx, id) })
}

// activityShown is how many lines the page is given.
const activityShown = 1000

// Activity is what happened, newest first.
func (p *People) Activity() ([]agentapi.Activity, error) {
	return ask(p.agent, func(ctx context.Context, g Agent) ([]agentapi.Activity, error) { return g.Activity(ctx, activityShown) })
}

// ClearActivity forgets all of it.
func (p *People) ClearActivity() error {
	return tell(p.agent, func(ctx context.Context, g Agent) error { return g.ClearActivity(ctx) })
}

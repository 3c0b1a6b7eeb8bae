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

// Grant gives one app to one person, or withdraws it.
func (p *People) Grant(accountID, app string, granted bool) (agentapi.PersonChanged, error) {
	return ask(p.agent, func(ctx context.Context, g Agent) (agentapi.PersonChanged, error) {
		return g.Grant(ctx, agentapi.GrantRequest{AccountID: accountID, App: app, Granted: granted})
	})
}

// Remove ends a person's access to the whole computer.
func (p *People) Remove(accountID string) (agentapi.PersonChanged, error) {
	return ask(p.agent, func(ctx context.Context, g Agent) (agentapi.PersonChanged, error) { return g.Remove(ctx, accountID) })
}

// Undo takes back what a notice tells of.
func (p *People) Undo(notice uint64) error {
	return tell(p.agent, func(ctx context.Context, g Agent) error { return g.UndoNotice(ctx, notice) })
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

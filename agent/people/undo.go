package people

import (
	"context"
	"fmt"
	"slices"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// maxNamed is how many apps a notice names.
const maxNamed = 3

// tellInvited tells of an invitation a program sent. Undoing it takes back what
// it added: all, for somebody who could open nothing before.
func (p *People) tellInvited(by Actor, before, after controlapi.Person, apps []engine.App) {
	undo := &store.Undo{AccountID: after.AccountID, Fresh: before.Status == "" || before.Status == controlapi.PersonRevoked}
	for _, app := range apps {
		if undo.Fresh || !slices.Contains(before.Apps, app.ID) {
			undo.Apps = append(undo.Apps, app.ID)
		}
	}
	if len(undo.Apps) == 0 {
		undo = nil // only a mail was sent
	}
	p.tell(by, agentapi.ActivityInvited, after, apps, undo)
}

// tellEnded tells of access a program took away, if there was any. A removal is
// undone by nothing but a fresh invitation, which only the invited can accept.
func (p *People) tellEnded(by Actor, before controlapi.Person, c store.PendingChange) {
	if c.AppID == "" {
		if before.Status != controlapi.PersonRevoked {
			p.tell(by, agentapi.ActivityRemoved, before, nil, nil)
		}
		return
	}
	if !slices.Contains(before.Apps, c.AppID) {
		return
	}
	for _, app := range p.cfg.Apps.Approved() {
		if app.ID == c.AppID {
			p.tell(by, agentapi.ActivityWithdrawn, before, []engine.App{app}, &store.Undo{AccountID: c.AccountID, Apps: []string{app.ID}})
		}
	}
}

// tell has the owner told of what a program did; what the owner does is known to
// the owner.
func (p *People) tell(by Actor, kind string, who controlapi.Person, apps []engine.App, undo *store.Undo) {
	p.nudge()
	if by.Owner {
		return
	}
	name := by.Name
	if name == "" {
		name = "A program on this computer"
	}
	var text string
	switch kind {
	case agentapi.ActivityInvited:
		text = fmt.Sprintf("%s invited %s to %s.", name, who.Email, named(apps))
	case agentapi.ActivityGranted:
		text = fmt.Sprintf("%s let %s open %s.", name, who.Email, named(apps))
	case agentapi.ActivityWithdrawn:
		text = fmt.Sprintf("%s took %s away from %s.", name, named(apps), who.Email)
	case agentapi.ActivityRemoved:
		text = fmt.Sprintf("%s removed %s from this computer. To let them in again, invite them.", name, who.Email)
	}
	if undo != nil {
		undo.Kind = kind
	}
	at := p.cfg.Now().UTC()
	if err := p.cfg.Apps.Tell(agentapi.Notice{At: at, Kind: kind, Text: text, By: by.Program}, undo); err != nil {
		p.cfg.Log.Error("the owner could not be told of what a program did", "err", err, "kind", kind)
	}
	if p.cfg.Activity == nil {
		return
	}
	line := agentapi.Activity{At: at, Email: who.Email, Kind: kind, By: name}
	if len(apps) == 0 {
		p.cfg.Activity(line)
	}
	for _, app := range apps {
		line.App = app.Label
		p.cfg.Activity(line)
	}
}

// named lists apps in a sentence.
func named(apps []engine.App) string {
	switch n := len(apps); {
	case n == 1:
		return apps[0].Label
	case n == 2:
		return apps[0].Label + " and " + apps[1].Label
	case n == maxNamed:
		return apps[0].Label + ", " + apps[1].Label + " and " + apps[2].Label
	case n > maxNamed:
		return fmt.Sprintf("%s, %s and %d more", apps[0].Label, apps[1].Label, n-2)
	}
	return "this computer"
}

// Undo carries out POST /owner/notices/{id}/undo: exactly what the notice tells
// of is taken back, and nothing that the owner has done since.
func (p *People) Undo(ctx context.Context, noticeID uint64) error {
	undo, ok, err := p.cfg.Store.UndoOf(noticeID)
	if err != nil {
		return err
	}
	if !ok {
		return agentapi.Errorf(agentapi.CodeNotFound, "There is nothing to undo here. It was undone already, or it is too long ago.")
	}
	if undo.Kind == agentapi.ActivityWithdrawn {
		err = p.undoWithdrawal(ctx, undo)
	} else {
		err = p.undoGift(ctx, undo)
	}
	if err != nil {
		return err
	}
	return p.cfg.Apps.Settle(noticeID, "You undid that.")
}

// undoGift takes the apps away again, and the whole computer from somebody who
// had nothing before and was given nothing since.
func (p *People) undoGift(ctx context.Context, undo store.Undo) error {
	row, _ := p.known(undo.AccountID) // has no apps while nobody knows it: it was invited a moment ago
	if undo.Fresh && !slices.ContainsFunc(row.Apps, func(id string) bool { return !slices.Contains(undo.Apps, id) }) {
		_, err := p.Revoke(ctx, Owner, agentapi.RevokeRequest{AccountID: undo.AccountID})
		return err
	}
	for _, id := range undo.Apps {
		if _, err := p.end(ctx, Owner, store.PendingChange{AccountID: undo.AccountID, AppID: id}, 0); err != nil {
			return err
		}
	}
	return nil
}

func (p *People) undoWithdrawal(ctx context.Context, undo store.Undo) error {
	for _, app := range p.cfg.Apps.Approved() {
		if slices.Contains(undo.Apps, app.ID) {
			_, err := p.give(ctx, Owner, agentapi.GrantRequest{AccountID: undo.AccountID, App: app.Label, Granted: true})
			return err
		}
	}
	return agentapi.Errorf(agentapi.CodeConflict, "The app is not on this computer any more, so it cannot be given back.")
}

package people

import (
	"context"
	"slices"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// tellGroupEnds tells the owner of apps that groups open no more because their time came.
func (p *People) tellGroupEnds() {
	p.grouping.Lock()
	defer p.grouping.Unlock()
	now := p.cfg.Access.ControlTime()
	for _, g := range p.cfg.Access.Groups() {
		var ended []store.GroupApp
		g.Apps = slices.Clone(g.Apps)
		for i, app := range g.Apps {
			if !app.Told && !app.Until.IsZero() && !now.Before(app.Until) {
				g.Apps[i].Told = true
				ended = append(ended, app)
			}
		}
		if len(ended) == 0 {
			continue
		}
		if _, err := p.cfg.Access.PutGroup(g, false); err != nil {
			p.cfg.Log.Error("the owner could not be told that a group opens an app no more", "err", err)
			continue
		}
		for _, app := range p.namedApps(appIDs(ended)...) {
			end, _ := appOf(g, app.ID)
			p.cfg.Activity.Add(agentapi.Activity{
				At: p.cfg.Now().UTC(), Kind: agentapi.ActivityGroupEnded, What: g.Name, Group: g.ID, App: app.Label, Name: app.Name, Until: end.Until,
			})
		}
	}
}

func appIDs(apps []store.GroupApp) []string {
	ids := make([]string, len(apps))
	for i, app := range apps {
		ids[i] = app.AppID
	}
	return ids
}

// undoOfGroup is how to take back what the owner did with a group; nil where that would not
// restore what was.
func (p *People) undoOfGroup(line agentapi.Activity) func(context.Context) error {
	if line.Kind == agentapi.ActivityGroupRemoved {
		g, there := find(p.cfg.Access.RemovedGroups(), func(g store.Group) bool { return g.ID == line.Group })
		if !there {
			return nil
		}
		return func(ctx context.Context) error { return p.restoreGroup(ctx, g) }
	}
	g, err := p.group(line.Group)
	if err != nil {
		return nil
	}
	var do groupChange
	switch line.Kind {
	case agentapi.ActivityGroupAdded:
		if len(g.Members)+len(g.Apps) == 0 {
			do = func(ctx context.Context) (agentapi.GroupChanged, error) { return p.RemoveGroup(ctx, g.ID) }
		}
	case agentapi.ActivityGroupJoined, agentapi.ActivityGroupLeft:
		do = p.undoOfMember(line, g)
	case agentapi.ActivityGroupGiven, agentapi.ActivityGroupWithdrawn:
		do = p.undoOfGroupApp(line, g)
	}
	if do == nil {
		return nil
	}
	return func(ctx context.Context) error { _, err := do(ctx); return err }
}

type groupChange func(context.Context) (agentapi.GroupChanged, error)

// undoOfMember is undoOfGroup for somebody who joined or left.
func (p *People) undoOfMember(line agentapi.Activity, g store.Group) groupChange {
	member, in := agentapi.MemberRequest{AccountID: line.AccountID}, isIn(g, line.AccountID)
	if line.Kind == agentapi.ActivityGroupJoined {
		if !in {
			return nil
		}
		return func(ctx context.Context) (agentapi.GroupChanged, error) { return p.LeaveGroup(ctx, g.ID, member) }
	}
	// Who was removed and invited since is not in it by what was before.
	row, known := p.Row(line.AccountID)
	if in || !known || row.Status == controlapi.PersonRemoved || !row.Since.Before(line.At) {
		return nil
	}
	return func(ctx context.Context) (agentapi.GroupChanged, error) { return p.JoinGroup(ctx, g.ID, member) }
}

// undoOfGroupApp is undoOfGroup for an app that a group was given, or that was withdrawn from it.
func (p *People) undoOfGroupApp(line agentapi.Activity, g store.Group) groupChange {
	app, live := p.stillLive(line)
	open, given := appOf(g, app.ID)
	back := agentapi.GroupAppRequest{App: app.Label}
	if line.Kind == agentapi.ActivityGroupGiven {
		if !live || !given || !open.Until.Equal(line.Until) {
			return nil
		}
		return func(ctx context.Context) (agentapi.GroupChanged, error) { return p.WithdrawGroup(ctx, g.ID, back) }
	}
	if !live || given || !line.Until.IsZero() && !line.Until.After(p.cfg.Now()) {
		return nil
	}
	back.Until = untilText(line.Until)
	return func(ctx context.Context) (agentapi.GroupChanged, error) { return p.GrantGroup(ctx, g.ID, back) }
}

// untilText is an end as it is asked for.
func untilText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// restoreGroup has a group back that was removed.
func (p *People) restoreGroup(ctx context.Context, g store.Group) error {
	defer p.tellGroups(ctx)
	p.grouping.Lock()
	defer p.grouping.Unlock()
	named := func(other store.Group) bool { return strings.EqualFold(other.Name, g.Name) }
	switch groups := p.cfg.Access.Groups(); {
	case slices.ContainsFunc(groups, named):
		return agentapi.Errorf(agentapi.CodeConflict, "There is a group called %q already.", g.Name)
	case len(groups) >= maxGroups:
		return agentapi.Errorf(agentapi.CodeConflict, "There are %d groups, which is as many as there can be. Remove one first.", maxGroups)
	}
	g = p.pruned(g)
	g.Removed = time.Time{}
	_, err := p.putGroup(g, false, agentapi.Activity{Kind: agentapi.ActivityGroupAdded})
	return err
}

// giveAgain has groups open apps again to somebody from whom they were withdrawn.
func (p *People) giveAgain(accountID string, appIDs ...string) {
	if err := p.cfg.Access.GiveAgain(accountID, appIDs...); err != nil {
		p.cfg.Log.Error("groups still open nothing to somebody of what was given to them again", "err", err)
	}
}

// regive is giveAgain for what nobody gave but a group: it undoes a withdrawal.
func (p *People) regive(accountID, appID string) error {
	if err := p.cfg.Access.GiveAgain(accountID, appID); err != nil {
		return agentapi.Errorf(agentapi.CodeInternal, "Porchlight could not write to its data directory, so nothing was undone. Is the disk full?")
	}
	p.happenedRestored(store.PendingChange{AccountID: accountID, AppID: appID})
	p.cfg.Changes.Raise()
	return nil
}

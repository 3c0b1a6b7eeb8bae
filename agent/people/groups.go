package people

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/internal/oneline"
)

// Groups: people that the owner names together, and the apps that a group opens to them.
// They are kept on this computer, and access decides by them; the control plane is told what
// they open, so that it lets their people visit. What is taken from one person stays taken,
// whatever group they are in.

// Bounds of groups.
const (
	maxGroups       = 50  // of a computer
	maxGroupMembers = 500 // of a group
	maxGroupApps    = 100 // of a group, ended ones included
	// groupBackFor is how long a group that was removed can be had back.
	groupBackFor = 24 * time.Hour
	// maxGroupsBack is how many removed groups can be had back: the latest.
	maxGroupsBack = 10
)

// memberKnownIn is how long somebody who was invited a moment ago is waited for to be in a
// snapshot.
const memberKnownIn = 2 * time.Second

// ListGroups lists the groups, by name. It waits for nobody.
func (p *People) ListGroups(context.Context) ([]agentapi.Group, error) { return p.Groups(), nil }

// Groups are the groups as the owner sees them, by name.
func (p *People) Groups() []agentapi.Group {
	out := []agentapi.Group{}
	for _, g := range p.cfg.Access.Groups() {
		out = append(out, p.shownGroup(g))
	}
	slices.SortFunc(out, func(a, b agentapi.Group) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), strings.Compare(a.ID, b.ID))
	})
	return out
}

func (p *People) shownGroup(g store.Group) agentapi.Group {
	labels, _, _ := p.labels()
	now := p.cfg.Access.ControlTime()
	out := agentapi.Group{ID: g.ID, Name: g.Name, From: g.From, Members: []agentapi.GroupMember{}}
	open, until, ended := []string{}, map[string]time.Time{}, map[string]time.Time{}
	for _, app := range g.Apps {
		switch {
		case !app.Until.IsZero() && !now.Before(app.Until):
			ended[app.AppID] = app.Until
			continue
		case !app.Until.IsZero():
			until[app.AppID] = app.Until
		}
		open = append(open, app.AppID)
	}
	out.Apps, out.Until, out.Ended = labelsOf(slices.Values(open), labels), labelled(until, labels), labelled(ended, labels)
	away := p.takenAway(unconfirmed)
	for _, row := range p.cfg.Access.Members(g) {
		if row = away.without(row); row.Status != controlapi.PersonRemoved {
			out.Members = append(out.Members, agentapi.GroupMember{AccountID: row.AccountID, Email: row.Email, Status: string(row.Status)})
		}
	}
	slices.SortFunc(out.Members, func(a, b agentapi.GroupMember) int { return strings.Compare(a.Email, b.Email) })
	return out
}

// AddGroup makes a group.
func (p *People) AddGroup(_ context.Context, req agentapi.GroupNamed) (agentapi.GroupChanged, error) {
	p.grouping.Lock()
	defer p.grouping.Unlock()
	name, err := oneline.Name(req.Name)
	switch {
	case err != nil:
		return agentapi.GroupChanged{}, agentapi.Errorf(agentapi.CodeInvalid, "%s", err)
	case name == "":
		return agentapi.GroupChanged{}, agentapi.Errorf(agentapi.CodeInvalid, "A group needs a name.")
	case len(p.cfg.Access.Groups()) >= maxGroups:
		return agentapi.GroupChanged{}, agentapi.Errorf(agentapi.CodeConflict, "There are %d groups, which is as many as there can be. Remove one first.", maxGroups)
	}
	if other, there := find(p.cfg.Access.Groups(), func(g store.Group) bool { return strings.EqualFold(g.Name, name) }); there {
		return agentapi.GroupChanged{}, agentapi.Errorf(agentapi.CodeConflict, "There is a group called %q already.", other.Name)
	}
	g := store.Group{ID: strings.ToLower(rand.Text()), Name: name}
	return p.putGroup(g, false, agentapi.Activity{Kind: agentapi.ActivityGroupAdded})
}

// changeGroup changes one group: change says what the owner did, nothing where nothing
// changes, and whether the group opens nothing by it that it did not open before.
func (p *People) changeGroup(ctx context.Context, id string, change func(g *store.Group) (did agentapi.Activity, takes bool, err error)) (agentapi.GroupChanged, error) {
	var did agentapi.Activity
	takes := false
	out, err := func() (out agentapi.GroupChanged, err error) {
		p.grouping.Lock()
		defer p.grouping.Unlock()
		g, err := p.group(id)
		if err == nil {
			did, takes, err = change(&g)
		}
		switch {
		case err != nil:
			return agentapi.GroupChanged{}, err
		case did.Kind == "":
			return agentapi.GroupChanged{OK: true, Group: p.shownGroup(g)}, nil
		}
		return p.putGroup(g, takes, did)
	}()
	if err == nil && did.Kind != "" && !takes {
		p.tellGroups(ctx)
	}
	return out, err
}

// RemoveGroup ends what a group opens. It can be had back for a day.
func (p *People) RemoveGroup(ctx context.Context, id string) (agentapi.GroupChanged, error) {
	return p.changeGroup(ctx, id, func(g *store.Group) (agentapi.Activity, bool, error) {
		g.Removed = p.cfg.Now().UTC()
		return agentapi.Activity{Kind: agentapi.ActivityGroupRemoved}, true, nil
	})
}

// JoinGroup has a person be in a group.
func (p *People) JoinGroup(ctx context.Context, id string, req agentapi.MemberRequest) (agentapi.GroupChanged, error) {
	row, err := p.mayJoin(ctx, req.AccountID)
	if err != nil {
		return agentapi.GroupChanged{}, err
	}
	return p.changeGroup(ctx, id, func(g *store.Group) (did agentapi.Activity, takes bool, err error) {
		switch {
		case isIn(*g, row.AccountID):
			return did, false, nil
		case len(g.Members) >= maxGroupMembers:
			return did, false, agentapi.Errorf(agentapi.CodeConflict, "%q has %d people, which is as many as a group can have.", g.Name, maxGroupMembers)
		}
		g.Members = append(butFor(*g, row.AccountID), store.GroupMember{AccountID: row.AccountID, Since: row.Since})
		return agentapi.Activity{Kind: agentapi.ActivityGroupJoined, Email: row.Email, AccountID: row.AccountID}, false, nil
	})
}

// mayJoin is the row of somebody who can be in a group.
func (p *People) mayJoin(ctx context.Context, accountID string) (controlapi.Person, error) {
	if err := p.connected(); err != nil {
		return controlapi.Person{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, memberKnownIn)
	defer cancel()
	p.cfg.Access.AwaitPerson(ctx, accountID)
	row, known := p.Row(accountID)
	switch {
	case !known:
		return row, agentapi.Errorf(agentapi.CodeNotFound, "This person is not on the list.")
	case row.Role == controlapi.RoleOwner:
		return row, agentapi.Errorf(agentapi.CodeInvalid, "This is the owner of the computer, who can open everything.")
	case row.Status == controlapi.PersonRemoved:
		return row, agentapi.Errorf(agentapi.CodeConflict, "%s is removed. Invite them to let them in again.", row.Email)
	case row.Since.IsZero():
		return row, agentapi.Errorf(agentapi.CodeConflict, "The server does not know groups yet. Whoever runs it has to update it.")
	}
	return row, nil
}

// LeaveGroup ends what a group opens to one person.
func (p *People) LeaveGroup(ctx context.Context, id string, req agentapi.MemberRequest) (agentapi.GroupChanged, error) {
	return p.changeGroup(ctx, id, func(g *store.Group) (did agentapi.Activity, takes bool, err error) {
		if !isIn(*g, req.AccountID) {
			return did, true, nil
		}
		if g.Members = butFor(*g, req.AccountID); g.From != "" {
			g.Members = append(g.Members, store.GroupMember{AccountID: req.AccountID, How: store.MemberOut})
		}
		row, _ := p.inSnapshot(req.AccountID)
		return agentapi.Activity{Kind: agentapi.ActivityGroupLeft, Email: row.Email, AccountID: req.AccountID}, true, nil
	})
}

// GrantGroup has a group open an app, or end it at another time.
func (p *People) GrantGroup(ctx context.Context, id string, req agentapi.GroupAppRequest) (agentapi.GroupChanged, error) {
	if err := p.canEnd(&req.Until); err != nil {
		return agentapi.GroupChanged{}, err
	}
	return p.changeGroup(ctx, id, func(g *store.Group) (did agentapi.Activity, takes bool, err error) {
		app, _ := p.cfg.Apps.ByLabel(req.App)
		before, given := appOf(*g, app.ID)
		if !given {
			live, err := p.liveApps([]string{req.App})
			if err != nil {
				return did, false, err
			}
			if app = live[0]; len(g.Apps) >= maxGroupApps {
				return did, false, agentapi.Errorf(agentapi.CodeConflict, "%q has %d apps, which is as many as a group can have.", g.Name, maxGroupApps)
			}
			before.AppID = app.ID
		}
		open, err := p.openUntil(before, req.Until)
		if err != nil || given && open == before {
			return did, false, err
		}
		g.Apps = append(slices.DeleteFunc(g.Apps, func(a store.GroupApp) bool { return a.AppID == app.ID }), open)
		takes = given && !open.Until.IsZero() && (before.Until.IsZero() || open.Until.Before(before.Until))
		return agentapi.Activity{Kind: agentapi.ActivityGroupGiven, App: app.Label, Name: app.Name, Until: open.Until}, takes, nil
	})
}

// openUntil is what a group opens with another end, one that canEnd took; with none it
// keeps the end it has, and what has ended is given anew without one, as to a person.
func (p *People) openUntil(open store.GroupApp, text string) (store.GroupApp, error) {
	now := p.cfg.Access.ControlTime()
	ended := !open.Until.IsZero() && !now.Before(open.Until)
	switch {
	case text == "" && !ended:
		return open, nil
	case text == "", text == agentapi.UntilNever:
		return store.GroupApp{AppID: open.AppID}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	switch {
	case err != nil || !at.After(now):
		return open, agentapi.Errorf(agentapi.CodeInvalid, "The end has to be later than now.")
	case at.Sub(now) > controlapi.MaxUntil:
		return open, agentapi.Errorf(agentapi.CodeInvalid, "A share can end in ten years at the latest. Give it without an end instead.")
	}
	return store.GroupApp{AppID: open.AppID, Until: at.UTC().Truncate(time.Second)}, nil
}

// WithdrawGroup has a group open an app no more.
func (p *People) WithdrawGroup(ctx context.Context, id string, req agentapi.GroupAppRequest) (agentapi.GroupChanged, error) {
	app, ok := p.cfg.Apps.ByLabel(req.App)
	if !ok {
		return agentapi.GroupChanged{}, agentapi.NoAppCalled(req.App)
	}
	var open store.GroupApp
	out, err := p.changeGroup(ctx, id, func(g *store.Group) (did agentapi.Activity, takes bool, err error) {
		var given bool
		if open, given = appOf(*g, app.ID); !given {
			return did, true, nil
		}
		g.Apps = slices.DeleteFunc(g.Apps, func(a store.GroupApp) bool { return a.AppID == app.ID })
		return agentapi.Activity{Kind: agentapi.ActivityGroupWithdrawn, App: app.Label, Name: app.Name, Until: open.Until}, true, nil
	})
	if !open.Until.IsZero() {
		out.Until = &open.Until
	}
	return out, err
}

func appOf(g store.Group, appID string) (store.GroupApp, bool) {
	return find(g.Apps, func(a store.GroupApp) bool { return a.AppID == appID })
}

func isIn(g store.Group, accountID string) bool {
	return slices.ContainsFunc(g.Members, func(m store.GroupMember) bool { return m.AccountID == accountID && m.How != store.MemberOut })
}

// butFor are the members of a group but for one.
func butFor(g store.Group, accountID string) []store.GroupMember {
	return slices.DeleteFunc(slices.Clone(g.Members), func(m store.GroupMember) bool { return m.AccountID == accountID })
}

// group is a copy of the group with an id, without who is none of its members any more and
// apps that are gone. p.grouping is held until it is put back.
func (p *People) group(id string) (store.Group, error) {
	g, there := find(p.cfg.Access.Groups(), func(g store.Group) bool { return g.ID == id })
	if !there {
		return g, agentapi.Errorf(agentapi.CodeNotFound, "There is no such group. It may have been removed already.")
	}
	return p.pruned(g), nil
}

func (p *People) pruned(g store.Group) store.Group {
	members := map[string]bool{}
	for _, row := range p.cfg.Access.Members(g) {
		members[row.AccountID] = true
	}
	g.Members = slices.Clone(g.Members)
	for i, m := range g.Members {
		if !members[m.AccountID] && g.From != "" { // no provider has whom the owner removed join again
			g.Members[i].How = store.MemberOut
		}
	}
	g.Members = slices.DeleteFunc(g.Members, func(m store.GroupMember) bool { return m.How != store.MemberOut && !members[m.AccountID] })
	g.Apps = slices.DeleteFunc(slices.Clone(g.Apps), func(a store.GroupApp) bool { return !p.cfg.Apps.Has(a.AppID) })
	return g
}

// putGroup has a group be so, and writes down what the owner did. p.grouping is held.
func (p *People) putGroup(g store.Group, takes bool, line agentapi.Activity) (agentapi.GroupChanged, error) {
	began := p.cfg.Now()
	if err := p.roomFor(g, takes); err != nil {
		return agentapi.GroupChanged{}, err
	}
	closed, err := p.cfg.Access.PutGroup(g, takes, p.longRemoved(g)...)
	if err != nil {
		p.cfg.Log.Error("a group could not be changed", "err", err)
		if takes {
			return agentapi.GroupChanged{}, errUnwritten
		}
		return agentapi.GroupChanged{}, agentapi.Errorf(agentapi.CodeInternal, "Porchlight could not write to its data directory, so the group stays as it was. Is the disk full?")
	}
	out := agentapi.GroupChanged{OK: true, Group: p.shownGroup(g), Closed: closed, Milliseconds: int(p.cfg.Now().Sub(began).Milliseconds())}
	line.At, line.Owner, line.What, line.Group, line.Closed = began.UTC(), line.By == "", g.Name, g.ID, closed
	p.cfg.Activity.Add(line)
	p.cfg.Changes.Raise() // which has the control plane told
	return out, nil
}

// tellGroups gives the control plane a moment to hear what groups open, so that who joined
// can visit at once. It is told later what it does not hear now.
func (p *People) tellGroups(ctx context.Context) {
	if p.cfg.Report == nil || p.away() || p.leftAlone() > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendIn)
	defer cancel()
	if err := p.cfg.Report(ctx); err != nil {
		p.cfg.Log.Info("the control plane is told later what groups open", "err", err)
	}
}

// roomFor refuses a group with which there are more gifts than the control plane takes.
// What takes away is never refused.
func (p *People) roomFor(g store.Group, takes bool) error {
	all := len(g.Members) * len(g.Apps)
	for _, other := range p.cfg.Access.Groups() {
		if other.ID != g.ID {
			all += len(p.cfg.Access.Members(other)) * len(other.Apps)
		}
	}
	if takes || all <= controlapi.MaxByGroup {
		return nil
	}
	return agentapi.Errorf(agentapi.CodeConflict, "All groups together can open %s apps, counted once for each person. Split or remove one first.", "5,000")
}

// longRemoved are the ids of groups that were removed and cannot be had back any more.
func (p *People) longRemoved(g store.Group) (ids []string) {
	removed := p.cfg.Access.RemovedGroups()
	slices.SortFunc(removed, func(a, b store.Group) int { return b.Removed.Compare(a.Removed) })
	for i, old := range removed {
		if old.ID != g.ID && (i >= maxGroupsBack-1 || p.cfg.Now().Sub(old.Removed) > groupBackFor) {
			ids = append(ids, old.ID)
		}
	}
	return ids
}

package people

import (
	"context"
	"slices"
	"strings"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// Groups that a provider fills. The owner names a group of a provider that may fill one of
// theirs; who is in it there joins and leaves as the provider says when they sign in. It brings
// in nobody whom the owner took out of that group, or off the list, and opens nothing that was
// taken from somebody.

// maxFrom is how long the name of a provider's group is, with the provider's, in bytes.
const maxFrom = 140

// FillGroup has a group of a provider fill one, in place of another; with none those whom it
// had join leave.
func (p *People) FillGroup(ctx context.Context, id string, req agentapi.FillRequest) (agentapi.GroupChanged, error) {
	name, group, named := strings.Cut(req.From, "/")
	visible := !strings.ContainsFunc(req.From, func(r rune) bool { return r < ' ' || r == 0x7f })
	if req.From != "" && (!named || name == "" || group == "" || len(req.From) > maxFrom || !visible) {
		return agentapi.GroupChanged{}, agentapi.Errorf(agentapi.CodeInvalid, "Name the provider and its group, like club/family.")
	}
	if known := p.cfg.Access.Snapshot().Providers; req.From != "" && !slices.Contains(known, name) {
		if len(known) == 0 {
			return agentapi.GroupChanged{}, agentapi.Errorf(agentapi.CodeInvalid, "The server names no provider that people sign in with, so none fills a group.")
		}
		return agentapi.GroupChanged{}, agentapi.Errorf(agentapi.CodeInvalid, "The server knows no provider called %[1]s, but %[2]s.", name, strings.Join(known, ", "))
	}
	out, err := p.changeGroup(ctx, id, func(g *store.Group) (did agentapi.Activity, takes bool, err error) {
		if g.From == req.From {
			return did, true, nil
		}
		g.From = req.From
		g.Members = slices.DeleteFunc(g.Members, func(m store.GroupMember) bool { return m.How != "" })
		return agentapi.Activity{Kind: agentapi.ActivityGroupFilled, By: req.From}, req.From == "", nil
	})
	if err == nil {
		p.Filled(p.cfg.Access.Snapshot())
		if g, err := p.group(id); err == nil {
			out.Group = p.shownGroup(g)
		}
	}
	return out, err
}

// Filled has people join and leave by what a snapshot says of providers' groups.
func (p *People) Filled(now controlapi.Snapshot) {
	p.grouping.Lock()
	defer p.grouping.Unlock()
	for _, g := range p.cfg.Access.Groups() {
		if g.From == "" {
			continue
		}
		for _, row := range now.People {
			p.fill(g.ID, row)
		}
	}
}

// fill has one person join or leave. p.grouping is held.
func (p *People) fill(id string, row controlapi.Person) {
	g, there := find(p.cfg.Access.Groups(), func(g store.Group) bool { return g.ID == id })
	m, is := find(g.Members, func(m store.GroupMember) bool { return m.AccountID == row.AccountID })
	in := slices.Contains(row.Filled, g.From) && row.Role != controlapi.RoleOwner && row.Status != controlapi.PersonRemoved && !row.Since.IsZero()
	line := agentapi.Activity{Email: row.Email, AccountID: row.AccountID, By: g.From}
	switch {
	case there && in && !is && len(g.Members) < maxGroupMembers:
		g.Members = append(slices.Clone(g.Members), store.GroupMember{AccountID: row.AccountID, Since: row.Since, How: store.MemberByProvider})
		line.Kind = agentapi.ActivityGroupJoined
	case there && !in && is && m.How == store.MemberByProvider && m.Since.Equal(row.Since):
		g.Members = butFor(g, row.AccountID)
		line.Kind = agentapi.ActivityGroupLeft
	default:
		return
	}
	if _, err := p.putGroup(g, !in, line); err != nil {
		p.cfg.Log.Warn("a provider's group could not be followed", "err", err)
	}
}

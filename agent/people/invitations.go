package people

import (
	"context"
	"errors"
	"slices"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/control/controlapi"
	"porchlight/internal/oneline"
)

// Several invitations at once, with a line of the owner's, and the addresses of
// invitations that the owner hands over. All of it is the owner's alone.

// InviteAll carries out POST /owner/people/invitations. Each address is invited as
// Invite would; what was refused for one stands in its entry. An error is of the whole,
// and nobody was invited.
func (p *People) InviteAll(ctx context.Context, req agentapi.InvitationsRequest) (agentapi.Invitations, error) {
	apps, err := p.checkAll(&req)
	if err != nil {
		return agentapi.Invitations{}, err
	}
	ctx, turn, err := p.begin(ctx, Owner, func(pending) bool { return true }) // who they are, the control plane knows
	if err != nil {
		return agentapi.Invitations{}, err
	}
	defer turn.end()
	all := controlapi.Invitations{Emails: req.Emails, Apps: idsOf(apps), Until: req.Until, Line: req.Line, NoMail: req.NoMail}
	all.Name, all.Language = p.displayName(Owner), p.language()
	were := p.asTheyWere()
	made, err := p.cfg.Control.InviteAll(ctx, all)
	if err != nil {
		return agentapi.Invitations{}, refusal(err)
	}
	out := p.invited(made, apps, turn.upTo)
	for _, one := range made.Invitations {
		if one.Person != nil {
			p.ownerGave(were(one.Person.AccountID), *one.Person, apps)
		}
	}
	for _, one := range slices.Backward(made.Invitations) {
		if one.Person != nil { // the last: the snapshot that has it has all
			p.endKnown(ctx, req.Until, *one.Person)
			break
		}
	}
	return out, nil
}

// displayName is what the owner calls themselves, for invitations of theirs. Those of a
// program have none: the name would vouch for what it asks.
func (p *People) displayName(by Actor) string {
	if p.cfg.DisplayName == nil || !by.Owner {
		return ""
	}
	return p.cfg.DisplayName()
}

// language is the tag of the one that mails are in, empty for English.
func (p *People) language() string {
	if p.cfg.Language == nil {
		return ""
	}
	return p.cfg.Language().Tag()
}

// checkAll refuses what is wrong for every address alike.
func (p *People) checkAll(req *agentapi.InvitationsRequest) (apps []engine.App, err error) {
	switch {
	case len(req.Emails) == 0:
		return nil, agentapi.Errorf(agentapi.CodeInvalid, "Name at least one address.")
	case len(req.Emails) > agentapi.MaxInvited:
		return nil, agentapi.Errorf(agentapi.CodeInvalid, "At most %d addresses can be invited at once.", agentapi.MaxInvited)
	}
	if req.Line, err = oneline.Line(req.Line); err != nil {
		return nil, agentapi.Errorf(agentapi.CodeInvalid, "%s", err)
	}
	if apps, err = p.liveApps(req.Apps); err != nil {
		return nil, err
	}
	for _, email := range req.Emails {
		if err := noSender(email); err != nil {
			return nil, err
		}
	}
	return apps, p.canEnd(&req.Until)
}

// invited notes and shows what the control plane made of an InviteAll.
func (p *People) invited(made controlapi.InvitationsMade, apps []engine.App, upTo uint64) agentapi.Invitations {
	url, ids := p.urlOf(apps), idsOf(apps)
	out := agentapi.Invitations{Invitations: make([]agentapi.Invited, len(made.Invitations))}
	for i, one := range made.Invitations {
		to := &out.Invitations[i]
		to.Email = one.Email
		switch {
		case one.Refused != nil:
			to.Error = refusal(one.Refused).Error()
			continue
		case one.Person == nil:
			to.Error = unreachable().Error()
			continue
		}
		p.liftGiven(*one.Person, ids, upTo)
		to.Email, to.AccountID, to.Status, to.URL = one.Person.Email, one.Person.AccountID, agentapi.PersonPending, url
		if one.Link != nil {
			to.Link = &agentapi.InvitationLink{URL: one.Link.URL, Until: one.Link.Until}
		}
	}
	p.wake.Raise()
	return out
}

// Link carries out POST /owner/people/link.
func (p *People) Link(ctx context.Context, req agentapi.LinkRequest) (agentapi.InvitationLink, error) {
	if err := p.connected(); err != nil {
		return agentapi.InvitationLink{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	link, err := p.cfg.Control.InvitationLink(ctx, controlapi.LinkWanted{AccountID: req.AccountID})
	switch e, ok := errors.AsType[*controlapi.Error](err); {
	case ok && e.Code == controlapi.CodeInvalid:
		return agentapi.InvitationLink{}, &agentapi.Error{Code: agentapi.CodeConflict, Message: e.Message, Words: e.Words}
	case err != nil:
		return agentapi.InvitationLink{}, refusal(err)
	}
	return agentapi.InvitationLink{URL: link.URL, Until: link.Until}, nil
}

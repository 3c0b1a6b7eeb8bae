package control

import (
	"context"
	"errors"

	"porchlight/control/controlapi"
	"porchlight/internal/oneline"
	"porchlight/internal/words"
)

// InviteAll invites several addresses to the same apps. Each is invited as Invite would,
// in a transaction of its own: what is refused for one, a spent budget too, leaves the
// others as they are. A refusal of the whole leaves nothing behind.
func (s *People) InviteAll(ctx context.Context, computerID string, all controlapi.Invitations) (controlapi.InvitationsMade, error) {
	i := inviting{apps: all.Apps, until: all.Until, noMail: all.NoMail, language: all.Language}
	if err := s.checkAll(ctx, computerID, all, &i); err != nil {
		return controlapi.InvitationsMade{}, err
	}
	out := controlapi.InvitationsMade{Invitations: []controlapi.InvitationMade{}}
	seen := map[string]bool{}
	for _, email := range all.Emails {
		if canonical, err := ParseEmail(email); err == nil {
			email = canonical
		}
		if seen[email] {
			continue
		}
		seen[email] = true
		i.email = email
		out.Invitations = append(out.Invitations, s.inviteOne(ctx, computerID, i))
	}
	return out, nil
}

// checkAll refuses what is wrong for every address alike, and reads what the owner wrote
// into i.
func (s *People) checkAll(ctx context.Context, computerID string, all controlapi.Invitations, i *inviting) (err error) {
	switch {
	case len(all.Emails) == 0:
		return refuse(controlapi.CodeInvalid, "Name at least one address.")
	case len(all.Emails) > controlapi.MaxInvited:
		return refuse(controlapi.CodeInvalid, "At most 50 addresses can be invited at once.")
	}
	if _, err := i.check(s.now()); err != nil {
		return err
	}
	if i.line, err = oneline.Line(all.Line); err != nil {
		return controlapi.Refuse(controlapi.CodeInvalid, words.InWords(err))
	}
	if i.from, err = oneline.Name(all.Name); err != nil {
		return controlapi.Refuse(controlapi.CodeInvalid, words.InWords(err))
	}
	_, err = viewed(ctx, s.core, func(tx *txn) (bool, error) { return true, tx.liveApps(computerID, i.apps) })
	return err
}

// inviteOne says what became of one address. A fault of this side is told of like a
// refusal: those before it are invited, and the agent has to hear which.
func (s *People) inviteOne(ctx context.Context, computerID string, i inviting) controlapi.InvitationMade {
	p, row, err := s.invite(ctx, computerID, i)
	if err == nil {
		link := s.link(row)
		return controlapi.InvitationMade{Email: p.Email, Person: &p, Link: &link}
	}
	refusal, ok := errors.AsType[*controlapi.Error](err)
	if !ok {
		if refusal, ok = Away(err); !ok {
			refusal = &controlapi.Error{Code: controlapi.CodeInternal, Message: "Something went wrong on the server. Try again in a moment."}
		}
		s.log.Error("an invitation of several failed", "err", err)
	}
	return controlapi.InvitationMade{Email: i.email, Refused: refusal}
}

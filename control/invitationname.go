package control

import (
	"context"
	"strings"

	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// The other address of an invitation, for its owner to hand over: as text, or as a
// code on a screen. It names the invitation and proves nothing. Whoever opens it is
// told who invites, and nothing of the address, the apps or the line; they go on
// by a code that is mailed to the invited address. A forwarded one is of no use to
// somebody who cannot read that mail, and tells them no more than this.

// ParseInvitationName reads a name as somebody may have typed it.
func ParseInvitationName(typed string) (name string, ok bool) {
	if len(typed) > 2*invitationNameLen {
		return "", false
	}
	name = strings.ToLower(strings.ReplaceAll(typed, "-", ""))
	odd := strings.IndexFunc(name, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '2' || r > '7') })
	return name, len(name) == invitationNameLen && odd < 0
}

// Link is the other address of a person's newest open invitation; it refuses with
// CodeInvalid where there is none.
func (s *People) Link(ctx context.Context, computerID string, wanted controlapi.LinkWanted) (controlapi.InvitationLink, error) {
	name := newInvitationName()
	return updated(ctx, s.core, func(tx *txn) (controlapi.InvitationLink, error) {
		p, err := find[person](tx, keyPerson(computerID, wanted.AccountID), refuse(controlapi.CodeInvalid, "This person is not on the list."))
		if err != nil {
			return controlapi.InvitationLink{}, err
		}
		hash, row := newestInvitation(tx, computerID, wanted.AccountID)
		switch {
		case hash == "":
			return controlapi.InvitationLink{}, noInvitation(p)
		case row.Name == "": // from before there were names
			row.Name = name
			tx.putInvitation(hash, row)
		}
		return s.link(row), nil
	})
}

func noInvitation(p person) error {
	switch {
	case p.Role == controlapi.RoleOwner:
		return refuse(controlapi.CodeInvalid, "This is the owner of the computer, who needs no invitation.")
	case p.Status == controlapi.PersonActive:
		return controlapi.Refuse(controlapi.CodeInvalid, words.Of("%s has come in already. The address of an app is all they need.", p.Email))
	}
	return controlapi.Refuse(controlapi.CodeInvalid, words.Of("%s has no invitation that works. Invite them again.", p.Email))
}

// NamedInvitation is what the page of an invitation's other address shows.
type NamedInvitation struct {
	// Proven says that the browser is signed in with the invited address. Without it
	// only Owner and From of the Invitation are there.
	Proven bool
	Invitation
}

// LookAtNamed says what the page of an invitation's other address shows to a browser
// that is signed in with an account, "" for none. The session token of the browser may
// be a limited one; see openInvitation. It refuses with CodeNotFound, and changes
// nothing.
func (s *People) LookAtNamed(ctx context.Context, name, accountID, sessionToken string) (NamedInvitation, error) {
	return viewed(ctx, s.core, func(tx *txn) (NamedInvitation, error) {
		_, row, p, err := s.namedInvitation(tx, name, sessionToken)
		if err != nil {
			return NamedInvitation{}, err
		}
		all, err := s.shown(tx, row, p)
		if err != nil || p.AccountID != accountID {
			return NamedInvitation{Invitation: Invitation{Owner: all.Owner, From: all.From}}, err
		}
		return NamedInvitation{true, all}, nil
	})
}

// AcceptNamed uses the invitation with a name up, for a browser that is signed in with
// the account it is for. It refuses with CodeNotFound, and with CodeForbidden another
// account.
func (s *People) AcceptNamed(ctx context.Context, name, accountID string) (Accepted, error) {
	out, err := updated(ctx, s.core, func(tx *txn) (Accepted, error) {
		hash, row, p, err := s.namedInvitation(tx, name, "")
		if err != nil {
			return Accepted{}, err
		}
		if accountID == "" || p.AccountID != accountID {
			return Accepted{}, refuse(controlapi.CodeForbidden, "This invitation is for another address. Sign in with that one.")
		}
		return s.use(tx, hash, row)
	})
	return s.asked(ctx, out, err)
}

// invitedTo is the address that the invitation with a name is for.
func (s *People) invitedTo(ctx context.Context, name string) (string, error) {
	return viewed(ctx, s.core, func(tx *txn) (string, error) {
		_, _, p, err := s.namedInvitation(tx, name, "")
		return p.Email, err
	})
}

// BeginNamed is SignIn.Begin for the address that the invitation with a name is for,
// which the browser is not told. It spends from the same budgets, and the browser is led
// back to the invitation.
func (s *Service) BeginNamed(ctx context.Context, name string, from Browser) (browserToken string, err error) {
	email, err := s.People.invitedTo(ctx, name)
	if err != nil {
		return "", err
	}
	return s.SignIn.Begin(ctx, email, from, InvitationPath(name))
}

func (s *People) namedInvitation(tx *txn, name, sessionToken string) (hash string, row invitation, p person, err error) {
	if hash, err = find[string](tx, keyInvitationName(name), &InvitationOver{}); err == nil {
		row, p, err = s.openInvitation(tx, hash, sessionToken)
	}
	return hash, row, p, err
}

package control

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	"porchlight/control/controlapi"
)

// Looking at an invitation, and using it up.

// Accepted is an invitation used.
type Accepted struct {
	// Token of the new session, in clear, or "" when the browser's own session
	// is one of the same account and without limits, and stays.
	Token string
	Host  string // of the first app, or of the computer: where to go now
	// Computer is its short name, and Off whether nobody answers there now.
	Computer string
	Off      bool

	row  computer
	seen time.Time
}

// asked is an invitation used, with whether somebody answers there.
func (s *People) asked(ctx context.Context, a Accepted, err error) (Accepted, error) {
	if err == nil {
		p := s.presence(ctx, a.row, a.seen)
		a.Off = !p.On && !p.Since.IsZero()
	}
	return a, err
}

// InvitationOver refuses an invitation that cannot be used, with CodeNotFound.
type InvitationOver struct {
	// Used and Ended are when it was; both zero for one that was taken back or never
	// was, which look the same.
	Used, Ended time.Time
	// Open is the host where the browser can go on that used it, or "" for another.
	Open string
}

func (o *InvitationOver) Error() string { return o.refusal().Message }

// Unwrap is the refusal in the control plane's words.
func (o *InvitationOver) Unwrap() error { return o.refusal() }

func (o *InvitationOver) refusal() *controlapi.Error {
	text := "This invitation does not work. Ask the person who invited you."
	switch {
	case !o.Used.IsZero():
		text = "This invitation was used already. If that was you, sign in; otherwise ask the person who invited you."
	case !o.Ended.IsZero():
		text = "This invitation has ended. Ask the person who invited you for another."
	}
	return &controlapi.Error{Code: controlapi.CodeNotFound, Message: text}
}

// LookAtInvitation says what the page of a link shows, and consumes nothing:
// mail scanners open links. The browser's session token tells who is signed in
// there; it may be empty. It refuses with CodeNotFound.
func (s *People) LookAtInvitation(ctx context.Context, link, sessionToken string) (Invitation, error) {
	if len(link) != tokenLen {
		return Invitation{}, &InvitationOver{}
	}
	return viewed(ctx, s.core, func(tx *txn) (Invitation, error) {
		row, p, err := s.openInvitation(tx, hashOf(purposeInvitation, link), sessionToken)
		if err != nil {
			return Invitation{}, err
		}
		out, err := s.shown(tx, row, p)
		if err != nil {
			return Invitation{}, err
		}
		here, found := get[session](tx, keySession(hashOf(purposeSession, sessionToken)))
		if found && here.AccountID != p.AccountID {
			other, _ := get[Account](tx, keyAccount(here.AccountID))
			out.Other = other.Email
		}
		return out, nil
	})
}

// AcceptInvitation uses a link up: the person becomes active, and the browser
// that sent it, whose session token may be empty, is signed in as them. The
// session it had ends, unless it is the same person's and without limits. A
// limited one of the same person passes on what it may visit. It refuses with
// CodeNotFound, and with NotByMail where the person is signed in otherwise, then.
func (s *People) AcceptInvitation(ctx context.Context, link, sessionToken string, client netip.Addr) (Accepted, error) {
	if len(link) != tokenLen {
		return Accepted{}, &InvitationOver{}
	}
	next, name := newEntry(), newInvitationName()
	hash, before := hashOf(purposeInvitation, link), hashOf(purposeSession, sessionToken)
	out, err := updated(ctx, s.core, func(tx *txn) (Accepted, error) {
		row, p, err := s.openInvitation(tx, hash, sessionToken)
		if err != nil {
			return Accepted{}, err
		}
		here, found := get[session](tx, keySession(before))
		samePerson := found && here.AccountID == p.AccountID
		if account, _ := get[Account](tx, keyAccount(p.AccountID)); account.MailOff && (!samePerson || len(here.Only) > 0) {
			if row.Name == "" { // from before there were names
				row.Name = name
				tx.putInvitation(hash, row)
			}
			return Accepted{}, kept{&NotByMail{row.Name}}
		}
		out, err := s.use(tx, hash, row)
		if err != nil {
			return Accepted{}, err
		}
		if samePerson && len(here.Only) == 0 {
			return out, nil
		}
		only := []string{row.ComputerID}
		if samePerson {
			tx.widen(here.Passkey, only)
			only = visitable(only, here.Only)
		}
		tx.endSession(before)
		tx.noteFamiliar(p.Email, client)
		tx.openSession(next.hash, session{ID: next.id, AccountID: p.AccountID, Client: addressOf(client), Only: only})
		out.Token = next.token
		return out, nil
	})
	return s.asked(ctx, out, err)
}

// NotByMail says that an invitation's mail does not sign its person in, who turned that
// off: they sign in otherwise, and accept at the invitation's other address.
type NotByMail struct{ Name string }

func (n *NotByMail) Error() string { return "the invited account is not signed in by mail" }

// shown is what the page of an open invitation shows to whoever proved its address.
func (s *People) shown(tx *txn, row invitation, p person) (Invitation, error) {
	c, owner, err := computerWithOwner(tx, row.ComputerID)
	if err != nil {
		return Invitation{}, err
	}
	return Invitation{
		Owner: owner.Email, From: row.From, Line: row.Line, Email: p.Email, Root: s.computer(c).Host, Until: row.Until,
		Apps: s.appsOpen(tx, c, row, p),
	}, nil
}

// use uses an invitation up: the person becomes active, and the first app that they may
// open is where to go.
func (s *People) use(tx *txn, hash string, row invitation) (Accepted, error) {
	c, _, err := computerWithOwner(tx, row.ComputerID)
	if err != nil {
		return Accepted{}, err
	}
	if err := tx.refuseSuspendedAt(c, row.AccountID); err != nil {
		return Accepted{}, err
	}
	p, err := tx.changePerson(c.ID, Account{ID: row.AccountID}, personAccepted, until{keep: true}, nil)
	if err != nil {
		return Accepted{}, err
	}
	tx.noteUsed(hash, row)
	seen, _ := get[time.Time](tx, keyComputerSeen(c.ID))
	return Accepted{Host: s.firstHost(tx, c, row, p), Computer: c.Name, row: c, seen: seen}, nil
}

// firstHost is where somebody goes with an invitation.
func (s *People) firstHost(tx *txn, c computer, row invitation, p person) string {
	if apps := s.appsOpen(tx, c, row, p); len(apps) > 0 {
		return apps[0].Host
	}
	return s.computer(c).Host
}

// openInvitation reads a link that can still be used, with the person it is
// for. The browser's session token is only to tell whoever used it where to go on.
func (s *People) openInvitation(tx *txn, hash, sessionToken string) (invitation, person, error) {
	row, found := get[invitation](tx, keyInvitation(hash))
	if !found {
		return invitation{}, person{}, s.overInvitation(tx, hash, sessionToken)
	}
	p, found := get[person](tx, keyPerson(row.ComputerID, row.AccountID))
	now := p.asOf(tx.now)
	switch {
	// Revoking deletes the links; that the row is looked at here as well keeps a
	// link that was missed from undoing it.
	case !found || p.Status == controlapi.PersonRemoved:
		return row, now, &InvitationOver{}
	case !tx.now.Before(row.Until): // it is kept longer, to say so
		return row, now, &InvitationOver{Ended: row.Until}
	case len(now.Apps)+len(now.ByGroup) == 0 && len(now.Ended) > 0:
		return row, now, &InvitationOver{Ended: slices.MaxFunc(slices.Collect(maps.Values(now.Ended)), time.Time.Compare)}
	}
	return row, now, nil
}

// overInvitation is why there is no open invitation with a hash.
func (s *People) overInvitation(tx *txn, hash, sessionToken string) *InvitationOver {
	used, found := get[usedInvitation](tx, keyUsedInvitation(hash))
	if !found {
		return &InvitationOver{}
	}
	result := &InvitationOver{Used: used.At}
	here, found := get[session](tx, keySession(hashOf(purposeSession, sessionToken)))
	if !found || here.AccountID != used.AccountID {
		return result
	}
	c, found := get[computer](tx, keyComputer(used.ComputerID))
	p, _ := get[person](tx, keyPerson(c.ID, used.AccountID))
	if found && p.Status == controlapi.PersonActive {
		result.Open = s.firstHost(tx, c, used.invitation, p.asOf(tx.now))
	}
	return result
}

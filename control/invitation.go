package control

import (
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/mail"
)

// Invitations. One transaction writes the grant, the link and the mail, so that
// the grant is there before anybody can read of it. The link is the sign-in as
// well: whoever reads the invited address's mail is that address. Opening it
// shows a page and changes nothing; the one click on that page uses the link up,
// makes the person active and opens a session that may visit this computer and
// no page of the account.

const (
	// invitationLife is how long an invitation's link can be used.
	invitationLife = 7 * 24 * time.Hour
	// PathInvitation is where the mailed link leads, under the auth URL, with
	// the token as parameter "token".
	PathInvitation = "/invitation"

	// maxVisitable bounds the computers one limited session may visit.
	maxVisitable = 32
)

// invitation is an open link as stored, under its hash.
type invitation struct {
	ComputerID string    `json:"computerId"`
	AccountID  string    `json:"accountId"`
	Apps       []string  `json:"apps"` // ids, as named
	Until      time.Time `json:"until"`
}

// InvitedApp is one app on the page of an invitation.
type InvitedApp struct {
	Label string
	Host  string // with the port unless it is 443
}

// Invitation is what the page of an open link shows.
type Invitation struct {
	Owner string // address of who invited
	Email string // address invited
	// Apps are those the person may open now, the ones named in the invitation
	// first; it is empty when all were withdrawn since.
	Apps  []InvitedApp
	Root  string // root host of the computer
	Until time.Time
	// Other is the address this browser is signed in with, when it is not the
	// one invited.
	Other string
}

// Accepted is an invitation used.
type Accepted struct {
	// Token of the new session, in clear, or "" when the browser's own session
	// is one of the same account and without limits, and stays.
	Token string
	Host  string // of the first app, or of the computer: where to go now
}

func invitationOver() error {
	return refuse(controlapi.CodeNotFound, "This invitation was used already, was taken back, or is more than seven days old. "+
		"If you used it before, sign in to see what you can open.")
}

// Invite invites an address to apps, all of which the computer must serve now, until
// the end that is asked for: it writes the person's row, makes their account when
// there is none, and mails a link. The inviting owner and the address both spend
// from the mail budget. Somebody active keeps that status and has the apps
// added. A refusal leaves nothing behind.
func (s *People) Invite(ctx context.Context, computerID string, i controlapi.Invite) (controlapi.Person, error) {
	email, err := ParseEmail(i.Email)
	if err != nil {
		return controlapi.Person{}, err
	}
	end, err := parseUntil(i.Until, s.now())
	if err != nil {
		return controlapi.Person{}, err
	}
	appIDs := i.Apps
	switch {
	case len(appIDs) == 0:
		return controlapi.Person{}, refuse(controlapi.CodeInvalid, "An invitation names at least one app.")
	case len(appIDs) > MaxApps:
		return controlapi.Person{}, refuse(controlapi.CodeInvalid, "An invitation names at most 500 apps.")
	}
	accountID, mailID, link := newID(), newID(), newToken()
	return updated(ctx, s.core, func(tx *txn) (controlapi.Person, error) {
		c, owner, err := computerWithOwner(tx, computerID)
		if err != nil {
			return controlapi.Person{}, err
		}
		if err := tx.liveApps(computerID, appIDs); err != nil {
			return controlapi.Person{}, err
		}
		account, err := tx.ensureAccount(accountID, email)
		if err != nil {
			return controlapi.Person{}, err
		}
		p, err := tx.changePerson(computerID, account, personInvited, end, appIDs)
		if err != nil {
			return controlapi.Person{}, err
		}
		if err := tx.roomFor(computerID, p); err != nil {
			return controlapi.Person{}, err
		}
		if err := tx.spend(budgetOwner.of(c.OwnerID), budgetRecipient.of(email)); err != nil {
			return controlapi.Person{}, err
		}
		row := invitation{ComputerID: computerID, AccountID: account.ID, Apps: appIDs, Until: tx.now.Add(invitationLife).UTC()}
		if err := tx.putInvitation(hashOf(purposeInvitation, link), row); err != nil {
			return controlapi.Person{}, err
		}
		return p.wire(tx.now), s.mailInvitation(tx, mailID, link, c, owner, email, row)
	})
}

// LookAtInvitation says what the page of a link shows, and consumes nothing:
// mail scanners open links. The browser's session token tells who is signed in
// there; it may be empty. It refuses with CodeNotFound.
func (s *People) LookAtInvitation(ctx context.Context, link, sessionToken string) (Invitation, error) {
	if len(link) != tokenLen {
		return Invitation{}, invitationOver()
	}
	return viewed(ctx, s.core, func(tx kv.Tx) (Invitation, error) {
		row, p, err := openInvitation(tx, s.now(), hashOf(purposeInvitation, link))
		if err != nil {
			return Invitation{}, err
		}
		c, owner, err := computerWithOwner(tx, row.ComputerID)
		if err != nil {
			return Invitation{}, err
		}
		out := Invitation{Owner: owner.Email, Email: p.Email, Root: s.computer(c).Host, Until: row.Until}
		if out.Apps, err = s.appsOpen(tx, c, row, p); err != nil {
			return Invitation{}, err
		}
		here, found, err := get[session](tx, keySession(hashOf(purposeSession, sessionToken)))
		if err != nil || !found || here.AccountID == p.AccountID {
			return out, err
		}
		other, _, err := get[Account](tx, keyAccount(here.AccountID))
		out.Other = other.Email
		return out, err
	})
}

// AcceptInvitation uses a link up: the person becomes active, and the browser
// that sent it, whose session token may be empty, is signed in as them. The
// session it had ends, unless it is the same person's and without limits. A
// limited one of the same person passes on what it may visit. It refuses with
// CodeNotFound.
func (s *People) AcceptInvitation(ctx context.Context, link, sessionToken string, client netip.Addr) (Accepted, error) {
	if len(link) != tokenLen {
		return Accepted{}, invitationOver()
	}
	next := newEntry()
	hash, before := hashOf(purposeInvitation, link), hashOf(purposeSession, sessionToken)
	return updated(ctx, s.core, func(tx *txn) (Accepted, error) {
		row, p, err := openInvitation(tx, tx.now, hash)
		if err != nil {
			return Accepted{}, err
		}
		c, _, err := computerWithOwner(tx, row.ComputerID)
		if err != nil {
			return Accepted{}, err
		}
		if p, err = tx.changePerson(c.ID, Account{ID: p.AccountID}, personAccepted, until{keep: true}, nil); err != nil {
			return Accepted{}, err
		}
		if err := tx.deleteInvitation(c.ID, p.AccountID, hash); err != nil {
			return Accepted{}, err
		}
		apps, err := s.appsOpen(tx, c, row, p)
		if err != nil {
			return Accepted{}, err
		}
		out := Accepted{Host: s.computer(c).Host}
		if len(apps) > 0 {
			out.Host = apps[0].Host
		}
		here, found, err := get[session](tx, keySession(before))
		if err != nil {
			return Accepted{}, err
		}
		samePerson := found && here.AccountID == p.AccountID
		if samePerson && len(here.Only) == 0 {
			return out, nil
		}
		only := []string{c.ID}
		if samePerson {
			for _, id := range here.Only {
				if id != c.ID && len(only) < maxVisitable {
					only = append(only, id)
				}
			}
		}
		if err := tx.endSession(before); err != nil {
			return Accepted{}, err
		}
		out.Token = next.token
		return out, tx.openSession(next.id, next.hash, p.AccountID, client, only...)
	})
}

// openInvitation reads a link that can still be used, with the person it is
// for.
func openInvitation(tx kv.Tx, now time.Time, hash string) (invitation, person, error) {
	row, err := find[invitation](tx, keyInvitation(hash), invitationOver())
	if err != nil {
		return invitation{}, person{}, err
	}
	if !now.Before(row.Until) { // the store may keep it a little longer
		return invitation{}, person{}, invitationOver()
	}
	p, err := find[person](tx, keyPerson(row.ComputerID, row.AccountID), invitationOver())
	// Revoking deletes the links; that the row is looked at here as well keeps a
	// link that was missed from undoing it.
	if err == nil && p.Status == controlapi.PersonRemoved {
		err = invitationOver()
	}
	return row, p, err
}

func (t *txn) putInvitation(hash string, row invitation) error {
	if err := put(t, keyInvitation(hash), row, invitationLife); err != nil {
		return err
	}
	return put(t, keyPersonInvitation(row.ComputerID, row.AccountID, hash), struct{}{}, invitationLife)
}

// mailInvitation writes the mail of an invitation, and forgets that an earlier one
// did not arrive.
func (s *People) mailInvitation(tx *txn, mailID, link string, c computer, owner Account, email string, row invitation) error {
	apps, err := s.appsNamed(tx, c, row.Apps)
	if err != nil {
		return err
	}
	address := s.cfg.AuthURL() + PathInvitation + "?" + url.Values{"token": {link}}.Encode()
	message, err := mail.Invitation{To: email, Owner: owner.Email, Apps: inMail(apps), Link: address, Until: row.Until}.Message()
	if err != nil {
		return err
	}
	message.About = c.ID
	if err := mail.ForgetUndelivered(tx, c.ID, email); err != nil {
		return err
	}
	return s.cfg.Mail.Put(tx, mailID, message)
}

func (t *txn) deleteInvitation(computerID, accountID, hash string) error {
	if err := t.Delete(keyPersonInvitation(computerID, accountID, hash)); err != nil {
		return err
	}
	return t.Delete(keyInvitation(hash))
}

// voidInvitations ends every open link of a person to a computer.
func (t *txn) voidInvitations(computerID, accountID string) error {
	return each(t, keyPersonInvitations(computerID, accountID), func(hash string, _ []byte) error {
		return t.deleteInvitation(computerID, accountID, hash)
	})
}

func computerWithOwner(tx kv.Tx, computerID string) (computer, Account, error) {
	none := refuse(controlapi.CodeNotFound, "There is no such computer.")
	c, err := find[computer](tx, keyComputer(computerID), none)
	if err != nil {
		return computer{}, Account{}, err
	}
	owner, err := find[Account](tx, keyAccount(c.OwnerID), none)
	return c, owner, err
}

// appsOpen are the live apps a person may open, those the invitation names
// first.
func (s *People) appsOpen(tx kv.Tx, c computer, row invitation, p person) ([]InvitedApp, error) {
	return s.appsNamed(tx, c, slices.DeleteFunc(append(slices.Clone(row.Apps), p.Apps...), func(id string) bool {
		return !slices.Contains(p.Apps, id)
	}))
}

// appsNamed are the live apps among the ids, in that order, each once.
func (s *People) appsNamed(tx kv.Tx, c computer, ids []string) ([]InvitedApp, error) {
	apps, _, err := get[[]controlapi.App](tx, keyComputerApps(c.ID))
	if err != nil {
		return nil, err
	}
	byID := make(map[string]controlapi.App, len(apps))
	for _, a := range apps {
		byID[a.ID] = a
	}
	root := s.computer(c).Host
	var out []InvitedApp
	for _, id := range ids {
		if a := byID[id]; a.Live {
			out = append(out, InvitedApp{Label: a.Label, Host: a.Name + "." + root})
			delete(byID, id)
		}
	}
	return out, nil
}

func inMail(apps []InvitedApp) []mail.App {
	out := make([]mail.App, len(apps))
	for i, a := range apps {
		name, _, _ := strings.Cut(a.Host, ".")
		out[i] = mail.App{Label: a.Label, Name: name}
	}
	return out
}

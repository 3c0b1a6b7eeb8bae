package control

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/mail"
	"porchlight/internal/oneline"
	"porchlight/internal/words"
)

// Invitations. One transaction writes the grant, the link and the mail, so that
// the grant is there before anybody can read of it. The link is the sign-in as
// well: whoever reads the invited address's mail is that address. Opening it
// shows a page and changes nothing; the one click on that page uses the link up,
// makes the person active and opens a session that may visit this computer and
// no page of the account. invitationname.go has the other address of an invitation,
// which its owner hands over and which signs nobody in.

const (
	// PathInvitation is where the mailed link leads, under the auth URL, with
	// the token as parameter "token".
	PathInvitation = "/invitation"

	// maxVisitable bounds the computers one limited session may visit.
	maxVisitable = 32
)

// InvitedApp is one app on the page of an invitation.
type InvitedApp struct {
	ID    string
	Label string
	Host  string // with the port unless it is 443
	// Until is when it ends for them; zero for never.
	Until time.Time
	TCP   bool // for ReachClient alone; of Membership.Apps
}

// Invitation is what the page of an open link shows.
type Invitation struct {
	Owner string // address of who invited
	From  string // what they call themselves, to stand beside the address, or ""
	Line  string // what they wrote, or ""
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

// Invite invites an address to apps, all of which the computer must serve now, until
// the end that is asked for: it writes the person's row, makes their account when
// there is none, and mails a link. The inviting owner and the address both spend
// from the mail budget. Somebody active keeps that status and has the apps
// added. A refusal leaves nothing behind.
func (s *People) Invite(ctx context.Context, computerID string, i controlapi.Invite) (controlapi.Person, error) {
	from, err := oneline.Name(i.Name)
	if err != nil {
		return controlapi.Person{}, controlapi.Refuse(controlapi.CodeInvalid, words.InWords(err))
	}
	p, _, err := s.invite(ctx, computerID, inviting{email: i.Email, apps: i.Apps, until: i.Until, from: from, program: i.Program, language: i.Language})
	return p, err
}

// inviting is what an invitation is made of.
type inviting struct {
	email      string
	apps       []string // ids
	until      string   // see controlapi.Invite
	line, from string   // see invitation
	noMail     bool     // it is handed over by its other address alone
	program    bool     // a program invites, and not the owner
	language   string   // tag of the mail's
}

// check is for what does not depend on the address.
func (i inviting) check(now time.Time) (until, error) {
	switch {
	case len(i.apps) == 0:
		return until{}, refuse(controlapi.CodeInvalid, "An invitation names at least one app.")
	case len(i.apps) > MaxApps:
		return until{}, refuse(controlapi.CodeInvalid, "An invitation names at most 500 apps.")
	}
	if i.program {
		return byProgram, nil
	}
	return parseUntil(i.until, now)
}

// invite writes one invitation.
func (s *People) invite(ctx context.Context, computerID string, i inviting) (controlapi.Person, invitation, error) {
	email, err := ParseEmail(i.email)
	if err != nil {
		return controlapi.Person{}, invitation{}, err
	}
	end, err := i.check(s.now())
	if err != nil {
		return controlapi.Person{}, invitation{}, err
	}
	accountID, mailID, name, link := newID(), newID(), newInvitationName(), newToken()
	var row invitation
	p, err := updated(ctx, s.core, func(tx *txn) (controlapi.Person, error) {
		c, owner, err := computerWithOwner(tx, computerID)
		if err != nil {
			return controlapi.Person{}, err
		}
		if !c.Suspended.IsZero() {
			return controlapi.Person{}, tx.refuseSuspended()
		}
		if err := tx.liveApps(computerID, i.apps); err != nil {
			return controlapi.Person{}, err
		}
		account := tx.ensureAccount(accountID, email)
		p, err := tx.changePerson(computerID, account, personInvited, end, i.apps)
		if err != nil {
			return controlapi.Person{}, err
		}
		if err := tx.roomFor(computerID, p); err != nil {
			return controlapi.Person{}, err
		}
		if err := tx.spend(budgetOwner.of(c.OwnerID), budgetInvited.of(email), budgetRecipient.of(email)); err != nil {
			return controlapi.Person{}, err
		}
		row = invitation{
			ComputerID: computerID, AccountID: account.ID, Apps: i.apps, Until: tx.now.Add(invitationLife).UTC(),
			Name: name, Line: i.line, From: i.from,
		}
		tx.putInvitation(hashOf(purposeInvitation, link), row)
		if !i.noMail {
			err = s.mailInvitation(tx, mailID, link, c, owner, email, row, p, i.language)
		}
		return p.wire(tx.now), err
	})
	return p, row, err
}

// mailInvitation writes the mail of an invitation, and forgets that an earlier one
// did not arrive.
func (s *People) mailInvitation(tx *txn, mailID, link string, c computer, owner Account, email string, row invitation, p person, language string) error {
	address := s.cfg.AuthURL() + PathInvitation + "?" + url.Values{"token": {link}}.Encode()
	spoken, _ := words.Named(language)
	message, err := mail.Invitation{
		To: email, Owner: owner.Email, From: row.From, Line: row.Line,
		Apps: inMail(s.appsNamed(tx, c, p.Until, row.Apps)), Link: address, Until: row.Until, End: endOf(p, row.Apps), Language: spoken,
	}.Message()
	if err != nil {
		return err
	}
	message.About = c.ID
	tx.do(func(in kv.Tx) error { return mail.ForgetUndelivered(in, c.ID, email) })
	s.putMail(tx, mailID, message)
	return nil
}

// endOf is when the last of some apps ends for a person; zero where one does not.
func endOf(p person, apps []string) (last time.Time) {
	for _, id := range apps {
		end, ends := p.Until[id]
		if !ends {
			return time.Time{}
		}
		if end.After(last) {
			last = end
		}
	}
	return last
}

func computerWithOwner(tx *txn, computerID string) (computer, Account, error) {
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
func (s *People) appsOpen(tx *txn, c computer, row invitation, p person) []InvitedApp {
	p = p.asOf(tx.now)
	return s.appsNamed(tx, c, p.Until, slices.DeleteFunc(append(slices.Clone(row.Apps), p.Apps...), func(id string) bool {
		return !slices.Contains(p.Apps, id)
	}))
}

// appsNamed are the live apps among the ids, in that order, each once, with the ends
// that some have.
func (s *People) appsNamed(tx *txn, c computer, ends map[string]time.Time, ids []string) (out []InvitedApp) {
	apps, _ := get[[]controlapi.App](tx, keyComputerApps(c.ID))
	byID := make(map[string]controlapi.App, len(apps))
	for _, a := range apps {
		byID[a.ID] = a
	}
	root := s.computer(c).Host
	for _, id := range ids {
		if a := byID[id]; a.Live {
			out = append(out, InvitedApp{Label: a.Label, Host: a.Name + "." + root, Until: ends[id]})
			delete(byID, id)
		}
	}
	return out
}

func inMail(apps []InvitedApp) []mail.App {
	out := make([]mail.App, len(apps))
	for i, a := range apps {
		name, _, _ := strings.Cut(a.Host, ".")
		out[i] = mail.App{Label: a.Label, Name: name, Until: a.Until}
	}
	return out
}

package control

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"porchlight/control/controlapi"
)

// App passwords: with one, a program that is no browser opens one app of one
// computer in its person's name (docs/interface.md, App passwords).
//
// A password is one row below its computer and person, so that the whole of a
// computer, which goes into every snapshot, is read in order, and what a person
// has there is a part of it. The row is all there is: one that has ended is
// deleted, and the agent refuses whatever the snapshot does not name. It ends with
// its app, with its person's access to the app, and with the person's removal, in
// the transaction of that, and nothing brings it back.

// formLife is how long it is remembered that a form has made a password.
const formLife = 24 * time.Hour

// Passwords are the app passwords of all computers.
type Passwords struct{ *core }

// appPassword as stored.
type appPassword struct {
	ID        string    `json:"id"`
	AccountID string    `json:"accountId"`
	AppID     string    `json:"appId"`
	Name      string    `json:"name"`
	Hash      string    `json:"hash"` // as controlapi.AppPassword has it
	CreatedAt time.Time `json:"createdAt"`
	// InvitedAt is the person's, when it was made: who was removed and invited again
	// has another.
	InvitedAt time.Time `json:"invitedAt"`
}

// opens says whether a password of this person opens its app. Rows that end with
// the person's access are deleted with it; this is for those that a node of an
// earlier version missed, which knows of no passwords.
func (p person) opens(row appPassword) bool {
	return p.mayOpen(row.AppID) && p.InvitedAt.Equal(row.InvitedAt)
}

func (p appPassword) info(email string) controlapi.PasswordInfo {
	return controlapi.PasswordInfo{
		ID: p.ID, AccountID: p.AccountID, Email: email, AppID: p.AppID, Name: p.Name, CreatedAt: p.CreatedAt,
	}
}

// newPassword makes a password and what is kept of it. There are too many to try
// them all, so a plain hash will do.
func newPassword() (password, hash string) {
	var b [20]byte
	rand.Read(b[:]) // never fails: it ends the program instead
	password = controlapi.PasswordPrefix + strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
	sum := sha256.Sum256([]byte(password))
	return password, base64.RawURLEncoding.EncodeToString(sum[:])
}

// NewPassword is what a person asks for on the page.
type NewPassword struct {
	Computer string // short name
	AppID    string
	Name     string // what the person calls it
	// Form is what NewForm gave the page. A form makes one password, however often
	// it is sent.
	Form string
}

// NewForm is what tells one form from another.
func (s *Passwords) NewForm() string { return newID() }

// MadePassword is a new password, this once.
type MadePassword struct {
	ID       string
	Password string
	Name     string
	Label    string // of its app
	Host     string // of its app
	Email    string // its user name
}

// Make makes a password for the person of a session. It refuses with
// CodeUnauthorized a session that is not fresh, or has ended, with CodeForbidden an app that the
// person may not open and one password too many, with CodeInvalid a name that will
// not do and a form that was sent before, and with CodeTooMany.
func (s *Passwords) Make(ctx context.Context, session Session, n NewPassword) (MadePassword, error) {
	if err := s.mayManage(ctx, session); err != nil { // what it spends is the account's
		return MadePassword{}, err
	}
	if !idPattern.MatchString(n.Form) {
		return MadePassword{}, refuse(controlapi.CodeInvalid, "This form was not sent by its page. Open the page again.")
	}
	none := refuse(controlapi.CodeForbidden, "You cannot open that app any more.")
	row := appPassword{AccountID: session.Account.ID, AppID: n.AppID, Name: n.Name}
	return s.makePassword(ctx, row, none, func(tx *txn) (computer, error) {
		if !tx.stillFresh(session) {
			return computer{}, passwordsWantFresh()
		}
		if err := tx.useForm(session.Account.ID, n.Form); err != nil {
			return computer{}, err
		}
		return findByName(tx, n.Computer, none)
	})
}

// useForm refuses a form that has made a password.
func (t *txn) useForm(accountID, form string) error {
	key := keyPasswordForm(accountID, hashOf(purposePasswordForm, form))
	if _, again := get[struct{}](t, key); again {
		return refuse(controlapi.CodeInvalid, "This form was sent before: its password was made, and cannot be shown again. Make another one, and revoke the one you have not put in anywhere.")
	}
	t.put(key, struct{}{}, formLife)
	return nil
}

// MakeForOwner makes a password for the owner of a computer. It refuses as Make
// does, and with CodeInvalid an app that the computer does not have.
func (s *Passwords) MakeForOwner(ctx context.Context, computerID string, m controlapi.MakePassword) (controlapi.MadePassword, error) {
	find := func(tx *txn) (computer, error) {
		return find[computer](tx, keyComputer(computerID), credentialUnknown())
	}
	c, err := viewed(ctx, s.core, find)
	if err != nil {
		return controlapi.MadePassword{}, err
	}
	none := refuse(controlapi.CodeInvalid, "The server has not heard of that app of this computer yet. Try again in a moment.")
	row := appPassword{AccountID: c.OwnerID, AppID: m.App, Name: m.Name}
	made, err := s.makePassword(ctx, row, none, find)
	return controlapi.MadePassword{ID: made.ID, Password: made.Password}, err
}

// mayManage refuses with CodeUnauthorized a session that may not make or list app
// passwords: one that an invitation made, or that is not fresh.
func (s *Passwords) mayManage(ctx context.Context, session Session) error {
	if fresh, err := s.fresh(ctx, session); err != nil {
		return err
	} else if !fresh {
		return passwordsWantFresh()
	}
	return nil
}

func passwordsWantFresh() error {
	return refuse(controlapi.CodeUnauthorized, "App passwords are made and shown after a sign-in from the last ten minutes. Sign in again.")
}

// makePassword stores a row with a new password for its account, whose name it checks. on
// finds the computer, and may refuse; none refuses an app that is not there or not
// for this person, which are told alike.
func (s *Passwords) makePassword(ctx context.Context, row appPassword, none error, on func(*txn) (computer, error)) (MadePassword, error) {
	if row.Name = strings.TrimSpace(row.Name); !validText(row.Name, controlapi.MaxPasswordName) {
		return MadePassword{}, refuse(controlapi.CodeInvalid, "Give the password a name of 1 to 60 visible characters, so that you know later which program has it.")
	}
	if err := s.pace.spend(s.now(), budgetPasswords.of(row.AccountID)); err != nil {
		return MadePassword{}, err
	}
	password, hash := newPassword()
	row.ID, row.Hash = newID(), hash
	return updated(ctx, s.core, func(tx *txn) (MadePassword, error) {
		c, err := on(tx)
		if err != nil {
			return MadePassword{}, err
		}
		p, err := find[person](tx, keyPerson(c.ID, row.AccountID), none)
		if err != nil {
			return MadePassword{}, err
		}
		app, err := appFor(tx, c.ID, p.asOf(tx.now), row.AppID, none)
		if err != nil {
			return MadePassword{}, err
		}
		row.InvitedAt = p.InvitedAt
		return MadePassword{
			ID: row.ID, Password: password, Name: row.Name, Label: app.Label, Host: app.Name + "." + s.computer(c).Host, Email: p.Email,
		}, tx.putPassword(c.ID, row)
	})
}

// appFor finds an app of a computer that the person may open, live or not; the
// error is none where there is no such app.
func appFor(tx *txn, computerID string, p person, appID string, none error) (controlapi.App, error) {
	apps, _ := get[[]controlapi.App](tx, keyComputerApps(computerID))
	i := slices.IndexFunc(apps, func(a controlapi.App) bool { return a.ID == appID })
	if i < 0 || !p.mayOpen(appID) {
		return controlapi.App{}, none
	}
	return apps[i], nil
}

// putPassword stores a password that is new, if there is room.
func (t *txn) putPassword(computerID string, row appPassword) error {
	all, same := 0, 0
	for _, other := range each[appPassword](t, keyPasswords(computerID)) {
		all++
		if other.AccountID == row.AccountID && other.AppID == row.AppID {
			same++
		}
	}
	switch {
	case same >= controlapi.MaxPasswordsEach:
		return refuse(controlapi.CodeForbidden, "You have 20 passwords for this app, which is as many as there can be. Revoke one that is not used any more.")
	case all >= controlapi.MaxPasswordsComputer:
		return refuse(controlapi.CodeForbidden, "This computer has 1,000 app passwords, which is as many as there can be. Somebody has to revoke one that is not used any more.")
	}
	row.CreatedAt = t.now.UTC()
	t.put(keyPassword(computerID, row.AccountID, row.ID), row, 0)
	t.note("password-made", row.AccountID, row.ID+" at "+computerID)
	t.touch(computerID)
	return nil
}

// endPasswords ends those passwords below prefix, which are one computer's, that
// which says.
func (t *txn) endPasswords(computerID, prefix string, which func(appPassword) bool) (ended int) {
	for _, row := range each[appPassword](t, prefix) {
		if which(row) {
			ended++
			t.delete(keyPassword(computerID, row.AccountID, row.ID))
			t.note("password-ended", row.AccountID, row.ID+" at "+computerID)
		}
	}
	if ended > 0 {
		t.touch(computerID)
	}
	return ended
}

func everyPassword(appPassword) bool { return true }

// endPersonsPasswords ends all that a person has on one computer.
func (t *txn) endPersonsPasswords(computerID, accountID string) {
	t.endPasswords(computerID, keyPersonPasswords(computerID, accountID), everyPassword)
}

// snapshotPasswords are those of a computer with these people that open something.
func snapshotPasswords(tx *txn, computerID string, people map[string]person) (out []controlapi.AppPassword) {
	for _, row := range each[appPassword](tx, keyPasswords(computerID)) {
		if people[row.AccountID].opens(row) {
			out = append(out, controlapi.AppPassword{ID: row.ID, AccountID: row.AccountID, AppID: row.AppID, Hash: row.Hash})
		}
	}
	return out
}

// Revoke ends a password of an account on the computer named short; one that has
// ended, and anybody else's, is no error and is left alone. Ending access asks for
// less than giving it: any session of the account will do, fresh or not.
func (s *Passwords) Revoke(ctx context.Context, accountID, short, id string) error {
	return s.update(ctx, func(tx *txn) error {
		if c, found := computerByName(tx, short); found {
			tx.endPasswords(c.ID, keyPersonPasswords(c.ID, accountID), func(row appPassword) bool { return row.ID == id })
		}
		return nil
	})
}

// RevokeAll ends every password of an account, on all computers.
func (s *Passwords) RevokeAll(ctx context.Context, accountID string) error {
	return s.update(ctx, func(tx *txn) error { tx.endAccountsPasswords(accountID); return nil })
}

func (t *txn) endAccountsPasswords(accountID string) {
	for computerID := range below(t, keyMemberships(accountID)) {
		t.endPersonsPasswords(computerID, accountID)
	}
}

// RevokeForComputer ends a password for a computer, whosever it is: it is the
// owner's computer. It refuses with CodeNotFound when there is none of that id.
func (s *Passwords) RevokeForComputer(ctx context.Context, computerID string, r controlapi.RevokePassword) error {
	return s.update(ctx, func(tx *txn) error {
		if tx.endPasswords(computerID, keyPasswords(computerID), func(row appPassword) bool { return row.ID == r.ID }) == 0 {
			return refuse(controlapi.CodeNotFound, "That app password has ended already.")
		}
		return nil
	})
}

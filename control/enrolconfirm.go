package control

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// Asking is a computer that waits to be confirmed, as its owner is shown it.
type Asking struct {
	Machine  string // host name as it says itself, may be ""
	Platform string // GOOS as it says itself
	Name     string // short name to suggest: what was wished for, or the account's own; or ""
	Client   netip.Addr
	BeganAt  time.Time
}

// Confirmed is what became of a confirmation.
type Confirmed struct {
	Computer controlapi.Computer
	// Replaces says that nothing was done, because the account has a computer of
	// this name that would be cut off: ask, and confirm again.
	Replaces bool
}

// MayEnrol refuses with CodeForbidden an account that may not connect computers:
// one that exists only because somebody shared an app with it, unless the
// operator allows that.
func (s *Enrolment) MayEnrol(account Account) error {
	if account.MayEnrol || s.cfg.MembersEnrol || s.cfg.OpenSignUp {
		return nil
	}
	return controlapi.Refuse(controlapi.CodeForbidden, words.Of("Somebody shared apps with this address; that does not let it connect computers here. Ask whoever runs %s to allow it.", s.cfg.AuthHostPort()))
}

// LookAt finds the computer that shows this user code. A code that is
// not right counts against the account and the address that tried it, and is
// refused with CodeNotFound, or CodeTooMany after five.
func (s *Enrolment) LookAt(ctx context.Context, account Account, code string, client netip.Addr) (out Asking, err error) {
	err = s.with(ctx, account, code, client, func(tx *txn, _ string, row enrolment) error {
		address, _ := netip.ParseAddr(row.Client) // the zero Addr where it is not known
		out = Asking{Machine: row.Machine, Platform: row.Platform, Name: cmp.Or(row.Name, s.nameOf(tx, account, row)), Client: address, BeganAt: row.BeganAt}
		return nil
	})
	if err != nil {
		return Asking{}, err
	}
	return out, nil
}

// nameOf is a short name made of an account's address, where the computer can have it
// without asking further.
func (s *Enrolment) nameOf(tx *txn, account Account, row enrolment) string {
	local, _, _ := strings.Cut(account.Email, "@")
	name := strings.Trim(strings.Map(func(r rune) rune {
		if controlapi.ValidLabel(string(r)) {
			return r
		}
		return '-'
	}, strings.ToLower(local)), "-")
	c, found := computerByName(tx, name)
	if s.cfg.ValidShortName(name) != nil || slices.Contains(row.Apps, name) || found && (c.OwnerID != account.ID || c.CredentialHash != "") {
		return ""
	}
	return name
}

// Confirm lets the computer that shows this user code become the
// account's computer named short. A session that is not fresh, or has ended, is refused with
// CodeUnauthorized, an account that may not connect computers with
// CodeForbidden, a name that cannot be chosen with CodeInvalid, and a wrong code
// as by LookAt. Taking the place of a computer that is connected needs
// replace.
func (s *Enrolment) Confirm(ctx context.Context, session Session, code, short string, replace bool, client netip.Addr) (out Confirmed, err error) {
	stale := refuse(controlapi.CodeUnauthorized, "Connecting a computer needs a sign-in from the last ten minutes. Sign in again.")
	if fresh, err := s.fresh(ctx, session); err != nil {
		return Confirmed{}, err
	} else if !fresh {
		return Confirmed{}, stale
	}
	computerID := newID()
	err = s.with(ctx, session.Account, code, client, func(tx *txn, device string, row enrolment) error {
		out = Confirmed{}
		if !tx.stillFresh(session) {
			return stale
		}
		if err := s.cfg.ValidShortName(short); err != nil {
			return err
		}
		if slices.Contains(row.Apps, short) {
			return controlapi.Refuse(controlapi.CodeInvalid, words.Of(`An app on that computer is called "%s" already. Choose another name for the computer.`, short))
		}
		c, found := computerByName(tx, short)
		switch {
		case found && c.OwnerID != session.Account.ID:
			return controlapi.Refuse(controlapi.CodeInvalid, words.Of(`The name "%s" is taken. Choose another one.`, short))
		case found && c.CredentialHash != "" && !replace:
			out = Confirmed{Computer: s.computer(c), Replaces: true}
			return nil
		case !found:
			var err error
			if c, err = s.newComputer(tx, computerID, short, session.Account); err != nil {
				return err
			}
		}
		row.Status, row.ComputerID, row.Replaces = enrolmentConfirmed, c.ID, c.CredentialHash
		out.Computer = s.computer(c)
		s.decide(tx, device, code, row)
		return nil
	})
	if err != nil {
		return Confirmed{}, err
	}
	return out, nil
}

// Deny refuses the computer that shows this user code; it is told so by
// its next poll.
func (s *Enrolment) Deny(ctx context.Context, account Account, code string, client netip.Addr) error {
	return s.with(ctx, account, code, client, func(tx *txn, device string, row enrolment) error {
		row.Status = enrolmentDenied
		s.decide(tx, device, code, row)
		return nil
	})
}

// decide keeps what became of an enrolment; its user code is used up.
func (s *Enrolment) decide(tx *txn, device, code string, row enrolment) {
	tx.delete(keyUserCode(s.userCodeHash(code)))
	tx.put(keyEnrolment(device), row, row.left(tx.now))
}

// with runs fn with the waiting enrolment of a code as ParseUserCode
// returns it, or counts a wrong try.
func (s *Enrolment) with(ctx context.Context, account Account, code string, client netip.Addr, fn func(tx *txn, device string, row enrolment) error) error {
	if err := s.MayEnrol(account); err != nil {
		return err
	}
	tries := []subject{budgetUserCodes.of(account.ID), budgetUserCodesFrom.of(clientKey(client))}
	codeHash := s.userCodeHash(code)
	return s.update(ctx, func(tx *txn) error {
		if err := tx.affords(tries...); err != nil {
			return err
		}
		device, row, found := enrolmentByCode(tx, codeHash)
		if found {
			return fn(tx, device, row)
		}
		if err := tx.spend(tries...); err != nil {
			return err
		}
		return kept{userCodeWrong()}
	})
}

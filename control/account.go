package control

import (
	"context"
	"net/mail"
	"strings"

	"golang.org/x/net/idna"

	"porchlight/control/controlapi"
)

// Accounts are those of everybody who can sign in.
type Accounts struct {
	*core
	sessions  *Sessions
	computers *Computers
	people    *People
}

// WrongEmail is how ParseEmail refuses, whatever is wrong.
func WrongEmail() error {
	return refuse(controlapi.CodeInvalid, "That does not look like an e-mail address.")
}

// ParseEmail returns the one canonical form of an e-mail address: what was
// written (spaces around it aside), in lower case, with the domain in its ASCII
// form. Plus tags and dots are kept: only the mail server knows what they mean.
// Display names, comments, quoted and non-ASCII local parts are refused.
func ParseEmail(input string) (string, error) {
	refused := WrongEmail()
	input = strings.TrimSpace(input)
	if len(input) > 254 {
		return "", refused
	}
	addr, err := mail.ParseAddress(input)
	if err != nil || addr.Name != "" || addr.Address != input {
		return "", refused
	}
	at := strings.LastIndexByte(input, '@')
	local, domain := input[:at], input[at+1:]
	if len(local) > 64 {
		return "", refused
	}
	for i := range len(local) {
		if local[i] <= ' ' || local[i] >= 0x7f {
			return "", refused
		}
	}
	domain, err = idna.Lookup.ToASCII(domain)
	if err != nil || !strings.Contains(domain, ".") || !isHostName(domain) {
		return "", refused
	}
	canonical := strings.ToLower(local) + "@" + domain
	if len(canonical) > 254 {
		return "", refused
	}
	return canonical, nil
}

// ByEmail finds the account of a canonical address, or refuses with
// CodeNotFound.
func (s *Accounts) ByEmail(ctx context.Context, email string) (Account, error) {
	return viewed(ctx, s.core, func(tx *txn) (Account, error) {
		a, found := accountByEmail(tx, email)
		if !found {
			return Account{}, refuse(controlapi.CodeNotFound, "There is no account for that address.")
		}
		return a, nil
	})
}

// Ensure returns the account of an address, making it when there is
// none. Either way it may connect computers from then on.
func (s *Accounts) Ensure(ctx context.Context, email string) (Account, error) {
	email, err := ParseEmail(email)
	if err != nil {
		return Account{}, err
	}
	id := newID()
	return updated(ctx, s.core, func(tx *txn) (Account, error) { return tx.ensureOwnAccount(id, email), nil })
}

func accountByEmail(tx *txn, email string) (Account, bool) {
	id, found := get[string](tx, keyAccountEmail(email))
	if !found {
		return Account{}, false
	}
	return get[Account](tx, keyAccount(id))
}

// ensureAccount takes the id a new account would get.
func (t *txn) ensureAccount(id, email string) Account {
	a, found := accountByEmail(t, email)
	if !found {
		a = Account{ID: id, Email: email, CreatedAt: t.now.UTC(), Suspended: t.suspendedSince("", email)}
		t.put(keyAccountEmail(email), id, 0)
		t.put(keyAccount(id), a, 0)
	}
	return a
}

// ensureOwnAccount is ensureAccount for somebody who may have computers.
func (t *txn) ensureOwnAccount(id, email string) Account {
	a := t.ensureAccount(id, email)
	if !a.MayEnrol {
		a.MayEnrol = true
		t.put(keyAccount(a.ID), a, 0)
	}
	return a
}

// List lists all accounts, in no order that means anything.
func (s *Accounts) List(ctx context.Context) ([]Account, error) {
	return viewed(ctx, s.core, func(tx *txn) ([]Account, error) { return rows[Account](tx, keyAccount("")), nil })
}

// Remove takes an account away with everything it has: its computers and
// everybody's access to them, what others shared with it, the apps it let in, its
// passkeys, its recovery codes and its sessions. An invitation to the same mail address makes another account. It
// refuses with CodeNotFound. Interrupted, it leaves the account, and goes on when
// it is called again.
func (s *Accounts) Remove(ctx context.Context, email string) error {
	account, err := s.ByEmail(ctx, email)
	if err != nil {
		return err
	}
	memberships, err := s.people.Memberships(ctx, account.ID)
	if err != nil {
		return err
	}
	for _, m := range memberships {
		if m.Role == controlapi.RoleOwner {
			err = s.computers.Remove(ctx, account.ID, m.Computer.Name)
		} else {
			err = s.people.Leave(ctx, account.ID, m.Computer.Name)
		}
		if err != nil && !IsRefusal(err, controlapi.CodeNotFound) { // gone meanwhile
			return err
		}
	}
	if err := s.sessions.SignOutEverywhere(ctx, account.ID); err != nil {
		return err
	}
	return s.update(ctx, func(tx *txn) error {
		for computerID := range below(tx, keyMemberships(account.ID)) {
			if err := notOwned(tx, computerID, account.ID); err != nil {
				return err
			}
		}
		for g := range eachGrant(tx, keyAccountGrants(account.ID)) {
			tx.revokeGrant(g.ID)
		}
		tx.endAccountsPasswords(account.ID)
		tx.endAccountsKnocks(account.ID)
		for hash := range below(tx, keyAccountPasskeys(account.ID)) {
			tx.deletePasskey(account.ID, hash)
		}
		for hash := range below(tx, keyAccountSessions(account.ID)) {
			tx.endSession(hash)
		}
		tx.delete(keyRecovery(account.Email), keyRecovering(account.ID))
		tx.delete(keyOperator(account.ID), keyFamiliar(account.Email), keyAccountEmail(account.Email), keyAccount(account.ID))
		return nil
	})
}

// notOwned refuses when the account owns the computer: it was connected while the
// others were removed.
func notOwned(tx *txn, computerID, accountID string) error {
	c, found := get[computer](tx, keyComputer(computerID))
	if found && c.OwnerID == accountID {
		return refuse(controlapi.CodeInvalid, "A computer of this account was connected at the same moment. Try again.")
	}
	return nil
}

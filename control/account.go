package control

import (
	"context"
	"net/mail"
	"strings"

	"golang.org/x/net/idna"

	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// Accounts are those of everybody who can sign in.
type Accounts struct{ *core }

// WrongEmail is how ParseEmail refuses, whatever is wrong.
func WrongEmail() error {
	return refuse(controlapi.CodeInvalid, "That does not look like an e-mail address.")
}

// ParseEmail returns the one canonical form of an e-mail address: what was
// written (spaces around it aside), in lower case, with the domain in its ASCII
// form. Plus tags and dots are kept: only the mail server knows what they mean.
// Display names, comments, quoted and non-ASCII local parts are refused, and
// whatever a named sender of a computer is called by.
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
	if len(canonical) > 254 || controlapi.OfSender(canonical) { // which nobody has
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
		t.put(keyAccountDomain(email), id, 0)
		t.put(keyAccountBelow(email), id, 0)
		t.note("account-made", id, "")
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
// passkeys, its logins, its recovery codes and its sessions; all of it, or with an error nothing. An
// invitation to the same mail address makes another account. It refuses with CodeNotFound.
func (s *Accounts) Remove(ctx context.Context, email string) error {
	return s.update(ctx, func(tx *txn) error {
		account, found := accountByEmail(tx, email)
		if !found {
			return refuse(controlapi.CodeNotFound, "There is no account for that address.")
		}
		return s.removeAccount(tx, account)
	})
}

// Delete is Remove for the person of a session, who is told by mail. It refuses with
// CodeUnauthorized a session that is not fresh, or has ended.
func (s *Accounts) Delete(ctx context.Context, session Session, from Asker) error {
	mailID := newID()
	return s.update(ctx, func(tx *txn) error {
		if !tx.stillFresh(session) {
			return refuse(controlapi.CodeUnauthorized, "An account is deleted after a sign-in from the last ten minutes. Sign in again.")
		}
		account, err := find[Account](tx, keyAccount(session.Account.ID), noSession())
		if err != nil {
			return err
		}
		if err := s.removeAccount(tx, account); err != nil {
			return err
		}
		return s.tell(tx, mailID, account, from, words.Of("Your account was deleted"),
			words.Of("Your account at %s was deleted, with your computers there and all that others had shared with you.", s.cfg.AuthHostPort()))
	})
}

func (s *core) removeAccount(tx *txn, account Account) error {
	for computerID := range below(tx, keyMemberships(account.ID)) {
		if c, found := get[computer](tx, keyComputer(computerID)); found && c.OwnerID == account.ID {
			s.removeComputer(tx, c)
			continue
		}
		p, _ := get[person](tx, keyPerson(computerID, account.ID))
		if p.Status == "" || p.Status == controlapi.PersonRemoved {
			continue
		}
		if _, err := tx.changePerson(computerID, account, personRemoved, until{keep: true}, nil); err != nil {
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
	for hash := range below(tx, keyAccountLogins(account.ID)) {
		tx.deleteLogin(account.ID, hash)
	}
	for hash := range below(tx, keyAccountSessions(account.ID)) {
		tx.endSession(hash)
	}
	tx.delete(keyRecovery(account.Email), keyRecovering(account.ID))
	tx.delete(keyOperator(account.ID), keyFamiliar(account.Email), keyAccountEmail(account.Email), keyAccountDomain(account.Email), keyAccountBelow(account.Email), keyAccount(account.ID))
	tx.note("account-removed", account.ID, "")
	return nil
}

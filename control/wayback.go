package control

import (
	"context"
	"crypto/subtle"
	"net/url"
	"strings"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/mail"
	"porchlight/internal/words"
)

// The ways back of who has lost their passkeys, beside a recovery code: a link that a
// connected computer of their own makes, and the operator, who has mail sign in again, and
// the passkeys removed, after a wait in which their person can stop it.

// RecoverIn is how long an operator's recovery waits before it takes effect.
const RecoverIn = 72 * time.Hour

// PathStopRecovery is where the link leads that stops one, under the auth URL, with the
// token as parameter "token".
const PathStopRecovery = "/signin/stop"

// Link makes a link that signs the owner of a computer in, once, within SignInLife: for the
// computer to open. They are told by mail. It refuses with CodeTooMany, and with
// CodeSuspended.
func (s *Recovery) Link(ctx context.Context, computerID string, wanted controlapi.LinkForOwner) (controlapi.OwnersLink, error) {
	link, mailID := newToken(), newID()
	language, _ := words.Named(wanted.Language)
	return updated(ctx, s.core, func(tx *txn) (controlapi.OwnersLink, error) {
		c, owner, err := computerWithOwner(tx, computerID)
		if err != nil {
			return controlapi.OwnersLink{}, err
		}
		if err := tx.refuseSuspendedAt(c, owner.ID); err != nil {
			return controlapi.OwnersLink{}, err
		}
		if err := tx.spend(budgetWaysBack.of(owner.ID)); err != nil {
			return controlapi.OwnersLink{}, err
		}
		tx.put(keySignIn(hashOf(purposeLink, link)), signIn{Email: owner.Email, Computer: c.ID, ReturnTo: "/account"}, SignInLife)
		out := controlapi.OwnersLink{
			URL: s.cfg.AuthURL() + PathSignInLink + "?" + url.Values{"token": {link}}.Encode(), Until: tx.now.UTC().Add(SignInLife),
		}
		return out, s.tell(tx, mailID, owner, Asker{Language: language}, words.Of("Your computer made a link to sign in"),
			words.Of("%[1]s made a link that signs its owner in at %[2]s, once, within 15 minutes.", s.computer(c).Host, s.cfg.AuthHostPort()),
			words.Of("Was it not you? Somebody uses that computer: lock it, open your account, and sign out everywhere else."))
	})
}

// recovering is what the operator began for an account.
type recovering struct {
	Until    time.Time `json:"until"`
	StopHash string    `json:"stopHash"`
}

// Begin has an account, after RecoverIn, signed in by mail again and without the passkeys and
// recovery codes that its person has lost, and returns when: as long as a passkey is there, a
// mail gives no power to add another. Its person is told, with a link that stops it, and by their
// computers; their passkey stops it, too. Begun again it goes on. It refuses with CodeNotFound, and with
// CodeInvalid an account that has no passkey and that mail signs in.
func (s *Recovery) Begin(ctx context.Context, email string) (until time.Time, err error) {
	secret, mailID := newToken(), newID()
	return updated(ctx, s.core, func(tx *txn) (time.Time, error) {
		account, found := accountByEmail(tx, email)
		switch {
		case !found:
			return time.Time{}, refuse(controlapi.CodeNotFound, "There is no account for that address.")
		case !account.MailOff && !tx.hasPasskey(account.ID):
			return time.Time{}, refuse(controlapi.CodeInvalid, "Mail signs that account in: its person asks for a link on the sign-in page.")
		}
		if row, begun := get[recovering](tx, keyRecovering(account.ID)); begun {
			return row.Until, nil
		}
		row := recovering{Until: tx.now.UTC().Add(RecoverIn), StopHash: hashOf(purposeStop, account.ID, secret)}
		tx.put(keyRecovering(account.ID), row, 0)
		for c := range eachOwned(tx, account.ID) { // whoever reads the mailbox deletes the mail
			c.Recovering = row.Until
			tx.put(keyComputer(c.ID), c, 0)
			tx.touch(c.ID)
		}
		tx.note("recovery-begun", account.ID, "")
		message, err := mail.Account{
			To: account.Email, Subject: words.Of("Your passkeys are about to be removed"),
			Says: []words.Sentence{
				words.Of("Somebody told the operator of %[1]s that you lost your passkeys. On %[2]s they and your recovery codes are removed, and from then on a mailed link signs you in there.",
					s.cfg.AuthHostPort(), row.Until.Format("2006-01-02 15:04 UTC")),
				words.Of("Was it not you? Stop it, or sign in with your passkey before then."),
			},
			Link: s.cfg.AuthURL() + PathStopRecovery + "?" + url.Values{"token": {account.ID + "." + secret}}.Encode(), Button: words.Of("Stop it"),
		}.Message()
		if err == nil {
			s.putMail(tx, mailID, message)
		}
		return row.Until, err
	})
}

func stopOver() error {
	return refuse(controlapi.CodeNotFound, "There is nothing to stop: it was stopped already, or has taken effect.")
}

// begun is whose recovery a token stops.
func (t *txn) begun(token string) (Account, error) {
	id, secret, _ := strings.Cut(token, ".")
	row, found := get[recovering](t, keyRecovering(id))
	if !found || subtle.ConstantTimeCompare([]byte(row.StopHash), []byte(hashOf(purposeStop, id, secret))) != 1 {
		return Account{}, stopOver()
	}
	return find[Account](t, keyAccount(id), stopOver())
}

// LookAtStop says whose recovery a token stops, and changes nothing: mail scanners open
// links. It refuses with CodeNotFound.
func (s *Recovery) LookAtStop(ctx context.Context, token string) (Account, error) {
	return viewed(ctx, s.core, func(tx *txn) (Account, error) { return tx.begun(token) })
}

// Stop stops a recovery. It refuses with CodeNotFound.
func (s *Recovery) Stop(ctx context.Context, token string) error {
	return s.update(ctx, func(tx *txn) error {
		account, err := tx.begun(token)
		if err == nil {
			tx.delete(keyRecovering(account.ID))
			tx.note("recovery-stopped", account.ID, "")
		}
		return err
	})
}

// due carries out those recoveries whose wait is over.
func (s *Recovery) due(ctx context.Context) {
	accounts, err := viewed(ctx, s.core, func(tx *txn) (ids []string, err error) {
		for id, row := range each[recovering](tx, keysRecovering) {
			if !tx.now.Before(row.Until) {
				ids = append(ids, id)
			}
		}
		return ids, nil
	})
	for _, id := range accounts {
		if err == nil {
			err = s.recover(ctx, id)
		}
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("a recovery whose wait is over takes effect later", "err", err)
	}
}

func (s *Recovery) recover(ctx context.Context, accountID string) error {
	mailID := newID()
	return s.update(ctx, func(tx *txn) error {
		row, found := get[recovering](tx, keyRecovering(accountID))
		account, _ := get[Account](tx, keyAccount(accountID))
		if !found || tx.now.Before(row.Until) || account.ID == "" { // stopped meanwhile
			return nil
		}
		tx.delete(keyRecovering(account.ID), keyRecovery(account.Email))
		if account.MailOff {
			tx.mailOn(account)
		}
		for hash := range eachPasskey(tx, account.ID) {
			tx.deletePasskey(account.ID, hash)
			if err := tx.endOpenedBy(account.ID, hash, ""); err != nil {
				return err
			}
		}
		return s.tell(tx, mailID, account, Asker{}, words.Of("Your passkeys were removed"),
			words.Of("The operator of %s had that done, as somebody told them that you lost your passkeys. A mailed link signs you in, and you can add a passkey again.", s.cfg.AuthHostPort()))
	})
}

package control

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net/netip"
	"slices"
	"strings"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/mail"
	"porchlight/internal/words"
)

// An account with a passkey may turn its sign-in by mail off: whoever reads its mailbox gets
// nowhere then. Without a passkey it comes back by one of its recovery codes, by a computer
// of its own, or by the operator (see wayback.go). Its person is told by mail of each use
// and each change.

// Recovery is signing in without mail, of all accounts.
type Recovery struct {
	*core
	signIn *SignIn
}

const (
	// maxRecoveryCodes is how many codes an account has at most: a set.
	maxRecoveryCodes = 10
	// recoveryLen is how many characters of 5 random bits a code has: 80 bits.
	recoveryLen = 16
)

// recovery is an account's recovery codes, each good once. They are under the hash of its
// address, so that as much is read for one that nobody has.
type recovery struct {
	AccountID string    `json:"accountId"`
	Hashes    []string  `json:"hashes"`
	MadeAt    time.Time `json:"madeAt"`
}

func hashOfRecovery(email, code string) string { return hashOf(purposeRecoveryCode, email, code) }

// find is which of the codes has this hash, or -1. All are compared, and as many where
// there are none.
func (r recovery) find(hash string) int {
	found, none := -1, strings.Repeat("0", len(hash))
	for n := range maxRecoveryCodes {
		kept := none
		if n < len(r.Hashes) {
			kept = r.Hashes[n]
		}
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare([]byte(kept), []byte(hash)), n, found)
	}
	return found
}

// newRecoveryCodes makes a set, in clear.
func newRecoveryCodes() (codes []string) {
	for range maxRecoveryCodes {
		codes = append(codes, strings.ToLower(rand.Text()[:recoveryLen]))
	}
	return codes
}

// recoveryCode is what somebody typed, with what people put in between left out; "" for
// what cannot be a code.
func recoveryCode(typed string) string {
	if len(typed) > 4*recoveryLen {
		return ""
	}
	code := strings.ToLower(strings.Join(strings.FieldsFunc(typed, func(r rune) bool { return r == '-' || r == ' ' }), ""))
	if len(code) != recoveryLen {
		return ""
	}
	return code
}

// mayRecover refuses with CodeUnauthorized a session that was not proven freshly by what no
// mailbox has, or has ended: its person may have just said that it was not them.
func (t *txn) mayRecover(session Session) error {
	if t.stillFresh(session) && (session.Proof == controlapi.ProofPasskey || session.Proof == controlapi.ProofCode) {
		return nil
	}
	return refuse(controlapi.CodeUnauthorized, "How you sign in is changed after a passkey or a recovery code of the last ten minutes. Sign in again.")
}

// Asker is who changes how somebody signs in, for the mail that tells of it.
type Asker struct {
	Client   netip.Addr
	Language words.Language
}

// MakeCodes makes another set of recovery codes for the person of a session, returned in
// clear, and those of before count no more. With off it turns their sign-in by mail off,
// too, and ends the sessions that a mail opened. It refuses with CodeUnauthorized a session that was not proven so freshly, and with
// CodeForbidden an account without a passkey.
func (s *Recovery) MakeCodes(ctx context.Context, session Session, off bool, from Asker) ([]string, error) {
	codes, mailID := newRecoveryCodes(), newID()
	return updated(ctx, s.core, func(tx *txn) ([]string, error) {
		account, err := find[Account](tx, keyAccount(session.Account.ID), noSession())
		if err != nil {
			return nil, err
		}
		if !tx.hasPasskey(account.ID) {
			return nil, refuse(controlapi.CodeForbidden, "Add a passkey first: without one, mail is the only way in.")
		}
		if err := tx.mayRecover(session); err != nil {
			return nil, err
		}
		row := recovery{AccountID: account.ID, MadeAt: tx.now.UTC()}
		for _, code := range codes {
			row.Hashes = append(row.Hashes, hashOfRecovery(account.Email, code))
		}
		tx.put(keyRecovery(account.Email), row, 0)
		tx.note("recovery-codes-made", account.ID, "")
		subject := words.Of("New recovery codes were made")
		says := words.Of("Your account at %s has ten new recovery codes. Those of before count no more.", s.cfg.AuthHostPort())
		if off && !account.MailOff {
			account.MailOff = true
			tx.note("mail-off", account.ID, "")
			tx.put(keyAccount(account.ID), account, 0)
			if err := tx.endMailed(account.ID); err != nil {
				return nil, err
			}
			subject = words.Of("Mail does not sign you in any more")
			says = words.Of("At %s you sign in with a passkey or a recovery code from now on. Links that were mailed before stop working, and browsers that one signed in are signed out.", s.cfg.AuthHostPort())
		}
		return codes, s.tell(tx, mailID, account, from, subject, says, notYou())
	})
}

// MailOn turns an account's sign-in by mail on again. It refuses as MakeCodes does.
func (s *Recovery) MailOn(ctx context.Context, session Session, from Asker) error {
	mailID := newID()
	return s.update(ctx, func(tx *txn) error {
		if err := tx.mayRecover(session); err != nil {
			return err
		}
		account, err := find[Account](tx, keyAccount(session.Account.ID), noSession())
		if err != nil || !account.MailOff {
			return err
		}
		tx.mailOn(account)
		return s.tell(tx, mailID, account, from, words.Of("Mail signs you in again"), words.Of("A mailed link signs you in at %s again.", s.cfg.AuthHostPort()), notYou())
	})
}

func (t *txn) mailOn(account Account) {
	account.MailOff = false
	t.note("mail-on", account.ID, "")
	t.put(keyAccount(account.ID), account, 0)
	t.delete(keyRecovering(account.ID))
}

func notYou() words.Sentence {
	return words.Of("Was it not you? Open your account, sign out everywhere else, and make new recovery codes.")
}

// tell puts the mail that tells somebody of their account.
func (s *core) tell(tx *txn, mailID string, account Account, from Asker, subject words.Sentence, says ...words.Sentence) error {
	came := mail.CameFrom(addressOf(from.Client))
	message, err := mail.Account{
		To: account.Email, Subject: subject, Says: slices.Insert(says, 1, came...),
		Link: s.cfg.AuthURL() + "/account", Button: words.Of("Your account"), Language: from.Language,
	}.Message()
	if err == nil {
		s.putMail(tx, mailID, message)
	}
	return err
}

// Left is how many recovery codes an account has.
func (s *Recovery) Left(ctx context.Context, account Account) (int, error) {
	return viewed(ctx, s.core, func(tx *txn) (int, error) {
		row, _ := get[recovery](tx, keyRecovery(account.Email))
		return len(row.Hashes), nil
	})
}

// WrongRecoveryCode is how WithCode refuses, whatever is wrong.
func WrongRecoveryCode() error {
	return refuse(controlapi.CodeForbidden, "That code is not right for this address, or it was used.")
}

// RecoveryUse is a code that somebody typed.
type RecoveryUse struct {
	Email string // canonical
	Code  string // as it was typed
	Known string // what SignIn.Remember returned for the browser, or ""
	Asker
}

// WithCode uses a recovery code up and opens a session for the browser that sent it. Wrong
// ones are counted for the network and the address alike whether somebody has it. What strangers
// tried for the address holds up no right code, of 80 bits, and no browser that has signed in
// with the address before. It refuses with WrongRecoveryCode (CodeForbidden) and CodeTooMany.
func (s *Recovery) WithCode(ctx context.Context, use RecoveryUse) (SignedIn, error) {
	network := budgetTries.of(clientKey(use.Client))
	tries := []subject{network}
	if !s.signIn.KnowsWith(use.Known, use.Email) {
		tries = append(tries, budgetTried.of(use.Email))
	}
	hash := hashOfRecovery(use.Email, recoveryCode(use.Code))
	next, mailID := newEntry(), newID()
	return updated(ctx, s.core, func(tx *txn) (SignedIn, error) {
		if err := tx.affords(network); err != nil {
			return SignedIn{}, err
		}
		row, _ := get[recovery](tx, keyRecovery(use.Email))
		n := row.find(hash)
		if n < 0 {
			if err := tx.spend(tries...); err != nil {
				return SignedIn{}, err
			}
			if row.AccountID != "" {
				tx.note("sign-in-failed", row.AccountID, "recovery code")
			}
			return SignedIn{}, kept{WrongRecoveryCode()}
		}
		account, err := find[Account](tx, keyAccount(row.AccountID), WrongRecoveryCode())
		if err != nil {
			return SignedIn{}, err
		}
		row.Hashes = slices.Delete(row.Hashes, n, n+1)
		tx.put(keyRecovery(use.Email), row, 0)
		tx.openSession(next.hash, session{ID: next.id, AccountID: account.ID, Client: addressOf(use.Client), Proof: controlapi.ProofCode})
		return SignedIn{Token: next.token, Account: account}, s.tell(tx, mailID, account, use.Asker,
			words.Of("A recovery code was used"),
			words.Counted(len(row.Hashes), "Somebody signed in at %[2]s with one of your recovery codes. %[1]d is left.",
				"Somebody signed in at %[2]s with one of your recovery codes. %[1]d are left.", s.cfg.AuthHostPort()), notYou())
	})
}

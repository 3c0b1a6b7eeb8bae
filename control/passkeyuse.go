package control

import (
	"bytes"
	"context"
	"encoding/base64"
	"iter"
	"net/netip"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/mail"
	"porchlight/internal/words"
)

// eachPasskey are the passkeys of an account, with the hash of each.
func eachPasskey(t *txn, accountID string) iter.Seq2[string, passkey] {
	return eachOf[passkey](t, keyAccountPasskeys(accountID), keyPasskey)
}

// BeginSignIn begins to sign in with a passkey, whosever it is: options are for the
// browser's navigator.credentials.get (as JSON), state for it to keep. Where it kept one
// whose challenge can still be answered for long enough, that goes on: several of its
// pages may ask at once. It refuses with CodeNotFound where there are no passkeys.
func (s *Passkeys) BeginSignIn(kept string) (options any, state string, err error) {
	if s.relying == nil {
		return nil, "", noPasskeys()
	}
	var again []webauthn.LoginOption
	left := PasskeyLife
	if challenge, still := s.opened(sealPasskeySignIn, anybody, kept); still > PasskeyLife/2 {
		raw, _ := base64.RawURLEncoding.DecodeString(challenge)
		left, again = still, append(again, webauthn.WithChallenge(raw))
	}
	assertion, began, err := s.relying.BeginDiscoverableLogin(again...)
	if err != nil {
		return nil, "", err
	}
	assertion.Response.Timeout = int(left / time.Millisecond)
	return assertion, s.sealed(sealPasskeySignIn, anybody, began.Challenge, s.now().Add(left)), nil
}

// anybody may finish a sign-in: nobody is known yet.
const anybody = "anybody"

// PasskeyUse is what a browser answers.
type PasskeyUse struct {
	State    string     // see BeginSignIn
	Answer   []byte     // AuthenticationResponseJSON
	Client   netip.Addr // the address it asks from
	Language words.Language
}

// wrongPasskey is how SignIn refuses, whatever is wrong.
func wrongPasskey() error {
	return refuse(controlapi.CodeForbidden, "That passkey is not known here, was removed, or took longer than five minutes. Try again, or have a link mailed.")
}

func copiedPasskey() error {
	return refuse(controlapi.CodeForbidden, "There may be a copy of that passkey, so it opens nothing any more. Have a link mailed, then remove the passkey in your account.")
}

// SignIn opens a session for the browser that answered with a passkey. A challenge is good
// for one answer. Where the passkey counts its signatures and the count did not rise,
// there may be a copy of it (section 6.1.1): it signs nobody in from then on, and the
// account is told by mail. It refuses with CodeForbidden.
func (s *Passkeys) SignIn(ctx context.Context, use PasskeyUse) (SignedIn, error) {
	challenge, left := s.opened(sealPasskeySignIn, anybody, use.State)
	answer, err := protocol.ParseCredentialRequestResponseBytes(use.Answer)
	if s.relying == nil || left == 0 || err != nil || !s.ours(answer.Response.CollectedClientData) {
		return SignedIn{}, wrongPasskey()
	}
	hash := hashOf(purposePasskey, string(answer.RawID))
	key := keyPasskey(hash)
	known, err := viewedOf(ctx, s.core, kv.Rows{Keys: []string{key}}, func(tx *txn) (passkey, error) {
		return find[passkey](tx, key, wrongPasskey())
	})
	if err != nil {
		return SignedIn{}, err
	}
	_, _, err = s.relying.ValidatePasskeyLogin(func(_, _ []byte) (webauthn.User, error) {
		return holder{Account{ID: known.AccountID}, []webauthn.Credential{known.credential()}}, nil
	}, webauthn.SessionData{Challenge: challenge, UserVerification: protocol.VerificationRequired}, answer)
	if err != nil {
		s.log.Info("a sign-in by passkey was refused", "err", err)
		s.noteOften("sign-in-failed", known.AccountID, "passkey")
		return SignedIn{}, wrongPasskey()
	}
	next, mailID := newEntry(), newID()
	in, err := updated(ctx, s.core, func(tx *txn) (SignedIn, error) {
		row, _ := get[passkey](tx, key)
		account, found := get[Account](tx, keyAccount(row.AccountID))
		if !found || row.AccountID != known.AccountID || !bytes.Equal(row.PublicKey, known.PublicKey) || tx.answered(challenge, PasskeyLife) {
			return SignedIn{}, wrongPasskey()
		}
		if row.Copied {
			return SignedIn{}, kept{copiedPasskey()}
		}
		counted := webauthn.Authenticator{SignCount: row.Count}
		counted.UpdateCounter(answer.Response.AuthenticatorData.Counter)
		row.Count, row.Copied = counted.SignCount, counted.CloneWarning
		if row.Copied {
			message, err := s.mailOf(account, mail.Passkey{Name: row.Name, Copied: true}, use.Client, use.Language)
			if err != nil {
				return SignedIn{}, err
			}
			tx.put(key, row, 0)
			tx.note("passkey-copied", account.ID, hash)
			s.putMail(tx, mailID, message)
			return SignedIn{}, kept{copiedPasskey()}
		}
		if len(row.Only) == 0 {
			tx.delete(keyRecovering(account.ID)) // they have their passkey
		}
		row.LastUsedAt = tx.now.UTC()
		tx.put(key, row, 0)
		tx.openSession(next.hash, session{ID: next.id, AccountID: account.ID, Client: addressOf(use.Client), Proof: controlapi.ProofPasskey,
			Passkey: hash, Only: row.Only})
		return SignedIn{Token: next.token, Account: account}, nil
	})
	if IsRefusal(err, controlapi.CodeForbidden) {
		s.noteOften("sign-in-failed", known.AccountID, "passkey")
	}
	return in, err
}

// told is the mail that tells an account of a passkey.
func (s *Passkeys) mailOf(account Account, p mail.Passkey, client netip.Addr, l words.Language) (mail.Message, error) {
	p.To, p.Host, p.From, p.Account, p.Language = account.Email, s.cfg.AuthHostPort(), addressOf(client), s.cfg.AuthURL()+"/account", l
	return p.Message()
}

package control

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	"github.com/go-webauthn/webauthn/webauthn"

	"porchlight/control/controlapi"
	"porchlight/control/mail"
	"porchlight/internal/words"
)

// Passkeys (WebAuthn, level 3): discoverable credentials of an account, made for the
// auth host and no other, that sign in by a touch. A ceremony keeps nothing here while it is under
// way, so strangers who begin one cost no row: the challenge is sealed into the browser's
// own state, and only the answer of a passkey leaves a row that has it refused again.
// Whoever begins a sign-in names no account, so it tells nothing of any.

const (
	// maxPasskeys is how many passkeys an account has.
	maxPasskeys = 20
	// MaxPasskeyName is how many characters a passkey's name has.
	MaxPasskeyName = 60
	// PasskeyLife is how long a challenge can be answered.
	PasskeyLife = 5 * time.Minute

	sealPasskeySignIn = "passkey sign-in"
	sealPasskeyNew    = "new passkey"
)

// Passkeys are those of all accounts.
type Passkeys struct {
	*core
	keys    *Keys
	relying *webauthn.WebAuthn // nil where there can be none
}

// passkey as stored, under the hash of its credential id.
type passkey struct {
	AccountID    string `json:"accountId"`
	CredentialID []byte `json:"credentialId"`
	PublicKey    []byte `json:"publicKey"` // COSE (RFC 9052)
	// Count is that of its signatures, 0 for one that does not count.
	Count uint32 `json:"count,omitempty"`
	// BackupEligible says that it may be kept elsewhere, too, which never changes.
	BackupEligible bool      `json:"backupEligible,omitempty"`
	Name           string    `json:"name"`
	CreatedAt      time.Time `json:"createdAt"`
	LastUsedAt     time.Time `json:"lastUsedAt,omitzero"`
	// Copied says that its count went back. It signs nobody in any more.
	Copied bool `json:"copied,omitempty"`
	// Only are the ids of the computers it opens, when an invitation's session made it: its
	// mail may have been forwarded. See Sessions.Replace for how it comes to open all.
	Only []string `json:"only,omitempty"`
}

// Passkey is one of an account's.
type Passkey struct {
	ID         string
	Name       string
	CreatedAt  time.Time
	LastUsedAt time.Time // zero for never
	Copied     bool      // there may be a copy: it signs nobody in any more
	Limited    bool      // it opens what an invitation did
}

// holder is whose passkeys the library looks at.
type holder struct {
	Account
	passkeys []webauthn.Credential
}

func (h holder) WebAuthnID() []byte                         { return []byte(h.ID) }
func (h holder) WebAuthnName() string                       { return h.Email }
func (h holder) WebAuthnDisplayName() string                { return h.Email }
func (h holder) WebAuthnCredentials() []webauthn.Credential { return h.passkeys }

func (p passkey) credential() webauthn.Credential {
	return webauthn.Credential{ID: p.CredentialID, PublicKey: p.PublicKey, Flags: webauthn.CredentialFlags{BackupEligible: p.BackupEligible}}
}

// algorithms are what a passkey signs with, the best first.
var algorithms = []protocol.CredentialParameter{
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgES256},
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgEdDSA},
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgRS256},
}

// relyingParty is the auth host as passkeys know it: its own name, and never the domain,
// which every app is below.
func (n Naming) relyingParty() (*webauthn.WebAuthn, error) {
	if n.Domain == n.AuthHost || strings.HasSuffix(n.Domain, "."+n.AuthHost) {
		return nil, errors.New("the computers' hosts are below the auth host, so that every app could ask for its passkeys")
	}
	return webauthn.New(&webauthn.Config{
		RPID: n.AuthHost, RPDisplayName: "Porchlight", RPOrigins: []string{n.AuthURL()},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			RequireResidentKey: protocol.ResidentKeyRequired(), ResidentKey: protocol.ResidentKeyRequirementRequired,
			UserVerification: protocol.VerificationRequired,
		},
	})
}

// ours says whether the page that asked for a passkey is of the auth host's own origin, to
// the letter: the library takes another spelling of it, too.
func (s *Passkeys) ours(c protocol.CollectedClientData) bool { return c.Origin == s.cfg.AuthURL() }

// Offered says whether there can be passkeys at this auth host.
func (s *Passkeys) Offered() bool { return s.relying != nil }

func noPasskeys() error {
	return refuse(controlapi.CodeNotFound, "There are no passkeys at this address.")
}

// sealed is the state of a ceremony, for the browser to keep: who may finish it, the
// challenge, and until when.
func (s *Passkeys) sealed(purpose, who, challenge string, until time.Time) string {
	return s.keys.Seal(purpose, who+" "+challenge+" "+strconv.FormatInt(until.Unix(), 10))
}

// opened is the challenge of a state, and for how long it can be answered; not at all for
// one that is not ours, over, or another's.
func (s *Passkeys) opened(purpose, who, state string) (challenge string, left time.Duration) {
	text, _ := s.keys.Unseal(purpose, state)
	fields := strings.Split(text, " ")
	if len(fields) != 3 || fields[0] != who {
		return "", 0
	}
	until, _ := strconv.ParseInt(fields[2], 10, 64)
	left = time.Unix(until, 0).Sub(s.now())
	if left <= 0 || left > PasskeyLife+clocksDiffer {
		return "", 0
	}
	return fields[1], left
}

// answered notes that a challenge, good for life, was answered, and says whether it was before.
func (t *txn) answered(challenge string, life time.Duration) (before bool) {
	key := keyPasskeyAnswered(hashOf(purposeChallenge, challenge))
	if _, before = get[struct{}](t, key); !before {
		t.put(key, struct{}{}, life+clocksDiffer)
	}
	return before
}

func passkeysWantFresh() error {
	return refuse(controlapi.CodeUnauthorized, "Passkeys are added and removed after a sign-in from the last ten minutes. Sign in again.")
}

// hasPasskey says whether an account has a passkey that signs in, to all that is theirs.
func (t *txn) hasPasskey(accountID string) bool {
	for _, row := range eachPasskey(t, accountID) {
		if !row.Copied && len(row.Only) == 0 {
			return true
		}
	}
	return false
}

// mayAdd says whether a session may add a passkey: a fresh one, and one that an invitation
// has just made, for the first passkey of an account that can open nothing but what that
// session can, and is no operator's: it opens no more than that session.
func (t *txn) mayAdd(session Session) bool {
	if !session.Limited {
		return t.fresh(session)
	}
	if !t.justProven(session) || len(t.scan(keyAccountPasskeys(session.Account.ID), "", 1)) > 0 {
		return false
	}
	if _, operator := get[Operator](t, keyOperator(session.Account.ID)); operator {
		return false
	}
	_, row := t.sessionByID(session)
	for computerID := range below(t, keyMemberships(session.Account.ID)) {
		if !slices.Contains(row.Only, computerID) {
			return false
		}
	}
	return true
}

// MayAdd says whether a session may add a passkey now.
func (s *Passkeys) MayAdd(ctx context.Context, session Session) (bool, error) {
	return viewed(ctx, s.core, func(tx *txn) (bool, error) { return tx.mayAdd(session), nil })
}

func tooManyPasskeys() error {
	return refuse(controlapi.CodeForbidden, "You have 20 passkeys, which is as many as there can be. Remove one that is not used any more.")
}

// BeginAdd begins to make a passkey for the person of a session: options are for the
// browser's navigator.credentials.create (as JSON), state for it to keep. It refuses with
// CodeUnauthorized a session for which MayAdd is false, and with CodeForbidden one passkey
// too many.
func (s *Passkeys) BeginAdd(ctx context.Context, session Session) (options any, state string, err error) {
	if s.relying == nil {
		return nil, "", noPasskeys()
	}
	rows, err := viewed(ctx, s.core, func(tx *txn) (rows []passkey, err error) {
		if !tx.mayAdd(session) {
			return nil, passkeysWantFresh()
		}
		for _, row := range eachPasskey(tx, session.Account.ID) {
			rows = append(rows, row)
		}
		return rows, nil
	})
	if err != nil {
		return nil, "", err
	}
	if len(rows) >= maxPasskeys {
		return nil, "", tooManyPasskeys()
	}
	var has []protocol.CredentialDescriptor
	for _, row := range rows {
		credential := row.credential()
		has = append(has, credential.Descriptor())
	}
	creation, began, err := s.relying.BeginRegistration(holder{Account: session.Account},
		webauthn.WithCredentialParameters(algorithms), webauthn.WithExclusions(has))
	if err != nil {
		return nil, "", err
	}
	creation.Response.Timeout = int(PasskeyLife / time.Millisecond)
	return creation, s.sealed(sealPasskeyNew, session.ID, began.Challenge, s.now().Add(PasskeyLife)), nil
}

// NewPasskey is what a browser made.
type NewPasskey struct {
	State    string     // see BeginAdd
	Answer   []byte     // RegistrationResponseJSON
	Name     string     // at most MaxPasskeyName characters
	Client   netip.Addr // for the mail that tells of it
	Language words.Language
}

// Add keeps a passkey for the person of a session, and tells them by mail. The browser has
// just shown that passkey: a session proven by it takes the place of the one given, with its
// limits. It refuses as BeginAdd does, with CodeInvalid what was not made for this session,
// host and challenge, and with CodeTooMany.
func (s *Passkeys) Add(ctx context.Context, session Session, n NewPasskey) (token string, err error) {
	if s.relying == nil {
		return "", noPasskeys()
	}
	if may, err := s.MayAdd(ctx, session); err != nil {
		return "", err
	} else if !may {
		return "", passkeysWantFresh()
	}
	if !validText(n.Name, MaxPasskeyName) {
		return "", wrongPasskeyName()
	}
	refused := refuse(controlapi.CodeInvalid, "That passkey was not made for this page, or it took longer than five minutes. Try again.")
	challenge, left := s.opened(sealPasskeyNew, session.ID, n.State)
	answer, err := protocol.ParseCredentialCreationResponseBytes(n.Answer)
	if left == 0 || err != nil || !s.ours(answer.Response.CollectedClientData) {
		return "", refused
	}
	made, err := s.relying.CreateCredential(holder{Account: session.Account}, webauthn.SessionData{
		Challenge: challenge, UserID: []byte(session.Account.ID), UserVerification: protocol.VerificationRequired, CredParams: algorithms,
	}, answer)
	if err != nil {
		s.log.Info("a passkey was not taken", "err", err)
		return "", refused
	}
	if err := s.pace.spend(s.now(), budgetPasskeys.of(session.Account.ID)); err != nil {
		return "", err
	}
	message, err := s.mailOf(session.Account, mail.Passkey{Name: n.Name, Invited: session.Limited}, n.Client, n.Language)
	if err != nil {
		return "", err
	}
	mailID, hash, next := newID(), hashOf(purposePasskey, string(made.ID)), newEntry()
	return updated(ctx, s.core, func(tx *txn) (string, error) {
		if _, taken := get[passkey](tx, keyPasskey(hash)); taken || tx.answered(challenge, PasskeyLife) {
			return "", refused
		}
		if _, err := find[Account](tx, keyAccount(session.Account.ID), noSession()); err != nil {
			return "", err
		}
		if len(tx.scan(keyAccountPasskeys(session.Account.ID), "", maxPasskeys)) >= maxPasskeys {
			return "", tooManyPasskeys()
		}
		before, row := tx.sessionByID(session)
		if before == "" || !tx.mayAdd(session) {
			return "", passkeysWantFresh()
		}
		tx.endSession(before)
		row.ID, row.Proof, row.Proven, row.Passkey = next.id, controlapi.ProofPasskey, tx.now.UTC(), hash
		tx.openSession(next.hash, row)
		tx.put(keyPasskey(hash), passkey{
			AccountID: session.Account.ID, CredentialID: made.ID, PublicKey: made.PublicKey, Count: made.Authenticator.SignCount,
			BackupEligible: made.Flags.BackupEligible, Name: n.Name, CreatedAt: tx.now.UTC(),
			Only: row.Only,
		}, 0)
		tx.put(keyAccountPasskey(session.Account.ID, hash), struct{}{}, 0)
		tx.addedPasskey(session.Account.ID, controlapi.AddedPasskey{ID: hash, Name: n.Name, Client: addressOf(n.Client), At: tx.now.UTC()})
		tx.note("passkey-added", session.Account.ID, hash)
		s.putMail(tx, mailID, message)
		return next.token, nil
	})
}

// Of lists the passkeys of an account, the first one first.
func (s *Passkeys) Of(ctx context.Context, accountID string) ([]Passkey, error) {
	return viewed(ctx, s.core, func(tx *txn) (out []Passkey, err error) {
		for hash, row := range eachPasskey(tx, accountID) {
			out = append(out, Passkey{hash, row.Name, row.CreatedAt, row.LastUsedAt, row.Copied, len(row.Only) > 0})
		}
		slices.SortFunc(out, func(a, b Passkey) int { return a.CreatedAt.Compare(b.CreatedAt) })
		return out, nil
	})
}

func wrongPasskeyName() error {
	return refuse(controlapi.CodeInvalid, "Give the passkey a name of 1 to 60 visible characters, so that you know it among others.")
}

// Rename gives a passkey of an account another name. It refuses with CodeInvalid a name
// that will not do, and with CodeNotFound a passkey that the account does not have.
func (s *Passkeys) Rename(ctx context.Context, accountID, id, name string) error {
	if name = strings.TrimSpace(name); !validText(name, MaxPasskeyName) {
		return wrongPasskeyName()
	}
	return s.update(ctx, func(tx *txn) error {
		row, found := get[passkey](tx, keyPasskey(id))
		if !found || row.AccountID != accountID {
			return refuse(controlapi.CodeNotFound, "That passkey was removed already.")
		}
		row.Name = name
		tx.put(keyPasskey(id), row, 0)
		return nil
	})
}

// Remove ends a passkey of the person of a session, and the other sessions that it opened; one that has ended, and anybody
// else's, is no error and is left alone. It refuses with CodeUnauthorized a session that
// is not fresh, or has ended: a browser left open is not to take away somebody's way in. With
// CodeForbidden it refuses the last one of an account that mail does not sign in.
func (s *Passkeys) Remove(ctx context.Context, session Session, id string) error {
	return s.update(ctx, func(tx *txn) error {
		if !tx.stillFresh(session) {
			return passkeysWantFresh()
		}
		if row, found := get[passkey](tx, keyPasskey(id)); found && row.AccountID == session.Account.ID {
			tx.deletePasskey(row.AccountID, id)
			if account, _ := get[Account](tx, keyAccount(row.AccountID)); account.MailOff && !row.Copied && !tx.hasPasskey(account.ID) {
				return refuse(controlapi.CodeForbidden, "That is your last passkey, and mail does not sign you in. Turn mail on first, or add another passkey.")
			}
			return tx.endOpenedBy(row.AccountID, id, session.ID)
		}
		return nil
	})
}

func (t *txn) deletePasskey(accountID, hash string) {
	t.delete(keyAccountPasskey(accountID, hash), keyPasskey(hash))
	t.note("passkey-removed", accountID, hash)
}

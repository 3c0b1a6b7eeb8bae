package control

import (
	"cmp"
	"context"
	"iter"
	"net/netip"
	"slices"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/internal/words"
)

// Sessions are those of browsers on the control plane.
type Sessions struct{ *core }

// SessionLife is how long a session lasts after it was last used.
const SessionLife = 30 * 24 * time.Hour

// sessionSlide is how much of its life a session must have used up before using
// it writes to the store again.
const sessionSlide = 24 * time.Hour

// maxSessions is how many sessions an account has here. One more ends the one
// that was not used for longest.
const maxSessions = 50

// session of a browser on the control plane, stored under the hash of its
// token.
type session struct {
	ID         string    `json:"id"`
	AccountID  string    `json:"accountId"`
	CreatedAt  time.Time `json:"createdAt"`
	LastUsedAt time.Time `json:"lastUsedAt"` // to within sessionSlide
	Client     string    `json:"client"`     // address it was made from
	// Only are the ids of the computers it may visit, when it was made by an
	// invitation; a session of a full sign-in has none and is not limited.
	Only []string `json:"only,omitempty"`
	// Proof is how the person showed who they are, absent: by mail; and Proven when, absent:
	// at CreatedAt, or, of a provider, nobody knows when.
	Proof  controlapi.Proof `json:"proof,omitempty"`
	Proven time.Time        `json:"proven,omitzero"`
	// Passkey is the hash of the passkey that opened it, absent for none.
	Passkey string `json:"passkey,omitempty"`
	// Device is what it was opened with; empty where that is not known.
	Device Device `json:"device,omitzero"`
	// Login is the hash of the login that opened it, and LoginSession that of the session at
	// the provider, where it tells; both absent for none.
	Login        string `json:"login,omitempty"`
	LoginSession string `json:"loginSession,omitempty"`
}

// Session is a signed-in browser.
type Session struct {
	ID        string
	Account   Account
	CreatedAt time.Time
	// Proof is how the person showed who they are, and Proven when.
	Proof      controlapi.Proof
	Proven     time.Time
	LastUsedAt time.Time
	Client     netip.Addr
	Device     Device
	// Limited says that an invitation made it, for some computers only.
	Limited bool
	// Renewed is set when using the session has lengthened its life, so that
	// the cookie should be set again.
	Renewed bool
}

func (s session) of(a Account) Session {
	client, _ := netip.ParseAddr(s.Client) // the zero Addr where it is not known
	out := Session{ID: s.ID, Account: a, CreatedAt: s.CreatedAt, LastUsedAt: s.LastUsedAt, Client: client, Device: s.Device,
		Limited: len(s.Only) > 0, Proof: cmp.Or(s.Proof, controlapi.ProofMail), Proven: s.Proven}
	if s.Proven.IsZero() && out.Proof != controlapi.ProofProvider {
		out.Proven = s.CreatedAt
	}
	return out
}

// FreshFor is how long after proving who they are somebody may do what gives power: a
// browser left open is not enough for that.
const FreshFor = 10 * time.Minute

// Fresh says whether a session may do now what gives power: connect a computer, make app
// passwords, change passkeys, export or delete the account. Its person has just shown who
// they are: where the account has a passkey by that or a recovery code, and never by a mail,
// which whoever reads the mailbox has.
func (s *Sessions) Fresh(ctx context.Context, session Session) (bool, error) {
	return s.fresh(ctx, session)
}

func (s *core) fresh(ctx context.Context, session Session) (bool, error) {
	return viewed(ctx, s, func(tx *txn) (bool, error) { return tx.fresh(session), nil })
}

func (t *txn) fresh(session Session) bool {
	if session.Limited || !t.justProven(session) {
		return false
	}
	switch session.Proof {
	case controlapi.ProofPasskey, controlapi.ProofCode:
		return true
	}
	return !t.hasPasskey(session.Account.ID)
}

// stillFresh is fresh for what a transaction is about to do: the session may have ended since it
// was read, as its person said that it was not them.
func (t *txn) stillFresh(session Session) bool {
	hash, _ := t.sessionByID(session)
	return hash != "" && t.fresh(session)
}

// justProven says whether a session's person has just shown who they are, however. One
// from the future, made while the clock was wrong, has not: it would stay so for as long
// as the clock was ahead.
func (t *txn) justProven(session Session) bool {
	age := t.now.Sub(session.Proven)
	return age < FreshFor && age > -clocksDiffer
}

func noSession() error {
	return refuse(controlapi.CodeUnauthorized, "You are signed out. Sign in again.")
}

// Of returns the session of a token, or refuses with CodeUnauthorized. A
// session that an invitation made is refused, too: it shows no account, gives no
// consent and connects no computer.
func (s *Sessions) Of(ctx context.Context, token string) (Session, error) {
	return s.findSession(ctx, token, func(_ *txn, row session) bool { return len(row.Only) == 0 })
}

// Any returns the session of a token, limited or not, or refuses with CodeUnauthorized.
func (s *Sessions) Any(ctx context.Context, token string) (Session, error) {
	return s.findSession(ctx, token, func(*txn, session) bool { return true })
}

// For returns the session of a token when it may visit the computer of
// this short name, or refuses with CodeUnauthorized.
func (s *Sessions) For(ctx context.Context, token, short string) (Session, error) {
	return s.findSession(ctx, token, func(tx *txn, row session) bool {
		if len(row.Only) == 0 {
			return true
		}
		c, found := computerByName(tx, short)
		return found && slices.Contains(row.Only, c.ID)
	})
}

// findSession reads the session of a token, if allowed says that it will do.
func (s *Sessions) findSession(ctx context.Context, token string, allowed func(*txn, session) bool) (Session, error) {
	if len(token) != tokenLen {
		return Session{}, noSession()
	}
	hash, now := hashOf(purposeSession, token), s.now()
	read := func(tx *txn) (row session, account Account, err error) {
		row, found := get[session](tx, keySession(hash))
		// The store may keep it a little longer.
		if !found || now.Sub(row.LastUsedAt) >= SessionLife || !allowed(tx, row) {
			return row, account, noSession()
		}
		account, err = find[Account](tx, keyAccount(row.AccountID), noSession())
		if err == nil && !account.Suspended.IsZero() {
			err = tx.refuseSuspended()
		}
		return row, account, err
	}
	out, err := viewedOf(ctx, s.core, kv.Rows{Keys: []string{keySession(hash)}}, func(tx *txn) (Session, error) {
		row, account, err := read(tx)
		return row.of(account), err
	})
	if err != nil || now.Sub(out.LastUsedAt) < sessionSlide {
		return out, err
	}
	return updated(ctx, s.core, func(tx *txn) (Session, error) {
		row, account, err := read(tx) // it may have ended meanwhile
		if err != nil {
			return Session{}, err
		}
		row.LastUsedAt = now.UTC()
		tx.putSession(hash, row)
		out := row.of(account)
		out.Renewed = true
		return out, nil
	})
}

// openSession stores a session that begins now, for the token with this hash.
func (t *txn) openSession(hash string, row session) {
	row.CreatedAt, row.LastUsedAt, row.Device = t.now.UTC(), t.now.UTC(), t.device
	t.sessionRoom(row.AccountID)
	t.putSession(hash, row)
	by := cmp.Or(string(row.Proof), "mail")
	if len(row.Only) > 0 {
		by = "invitation"
	}
	t.note("sign-in", row.AccountID, by)
}

// addressOf is how an address is kept; "" for one that is not known.
func addressOf(client netip.Addr) string {
	if !client.IsValid() {
		return ""
	}
	return client.String()
}

// sessionRoom ends the sessions of an account that were not used for longest
// until one more fits.
func (t *txn) sessionRoom(accountID string) {
	if index := t.scan(keyAccountSessions(accountID), "", 2*maxSessions); len(index) < maxSessions {
		return
	}
	type used struct {
		hash string
		at   time.Time
	}
	var all []used
	for hash, row := range eachSession(t, accountID) {
		all = append(all, used{hash, row.LastUsedAt})
	}
	slices.SortFunc(all, func(a, b used) int { return a.at.Compare(b.at) })
	for i := 0; i <= len(all)-maxSessions; i++ {
		t.endSession(all[i].hash)
	}
}

func (t *txn) putSession(hash string, row session) {
	t.put(keySession(hash), row, SessionLife)
	t.put(keyAccountSession(row.AccountID, hash), struct{}{}, SessionLife)
	if row.LoginSession != "" {
		t.put(keyLoginSession(row.LoginSession), row.AccountID, SessionLife)
	}
}

// SignOut ends the session of a token; an unknown one is no error.
func (s *Sessions) SignOut(ctx context.Context, token string) error {
	return s.update(ctx, func(tx *txn) error {
		hash := hashOf(purposeSession, token)
		if row, found := get[session](tx, keySession(hash)); found {
			tx.note("signed-out", row.AccountID, "a browser")
		}
		tx.endSession(hash)
		return nil
	})
}

// Replace ends the session old, in whose place the same browser has next now, both given by
// their tokens. Whoever holds both is who either says: a passkey that opens what an invitation
// did opens what the other session does from then on, and all where that is not limited. An
// invitation may be forwarded; the mailed link that a browser asked for is its person's.
func (s *Sessions) Replace(ctx context.Context, old, next string) error {
	before, after := hashOf(purposeSession, old), hashOf(purposeSession, next)
	return s.update(ctx, func(tx *txn) error {
		was, _ := get[session](tx, keySession(before))
		is, _ := get[session](tx, keySession(after))
		tx.endSession(before)
		if was.AccountID == "" || was.AccountID != is.AccountID || tx.now.Sub(was.LastUsedAt) >= SessionLife {
			return nil
		}
		tx.widen(was.Passkey, is.Only)
		if tx.widen(is.Passkey, was.Only) && len(is.Only) > 0 {
			is.Only = visitable(is.Only, was.Only)
			tx.putSession(after, is)
		}
		return nil
	})
}

// widen has a passkey that opens some computers open more of them, or all for none given; it
// says whether there is such a passkey.
func (t *txn) widen(hash string, only []string) bool {
	row, found := get[passkey](t, keyPasskey(hash))
	if hash == "" || !found {
		return false
	}
	if len(row.Only) > 0 {
		row.Only = visitable(row.Only, only)
		t.put(keyPasskey(hash), row, 0)
	}
	return true
}

// visitable are the computers of two limits, of which none is no limit.
func visitable(have, more []string) []string {
	if len(have) == 0 || len(more) == 0 {
		return nil
	}
	for _, id := range more {
		if !slices.Contains(have, id) && len(have) < maxVisitable {
			have = append(have, id)
		}
	}
	return have
}

func (t *txn) endSession(hash string) {
	if row, found := get[session](t, keySession(hash)); found {
		t.delete(keyAccountSession(row.AccountID, hash), keySession(hash))
	}
}

// SignOutEverywhere ends every session of an account: those here, and those on
// every computer it can reach, which hear of it by their epoch.
func (s *Sessions) SignOutEverywhere(ctx context.Context, accountID string) error {
	return s.SignOutElsewhere(ctx, accountID, "")
}

// SignOutElsewhere is SignOutEverywhere but for one session here, of the id
// given.
func (s *Sessions) SignOutElsewhere(ctx context.Context, accountID, keep string) error {
	return s.update(ctx, func(tx *txn) error {
		what := "everywhere"
		for hash, row := range eachSession(tx, accountID) {
			if keep == "" || row.ID != keep {
				tx.endSession(hash)
			} else {
				what = "everywhere else"
			}
		}
		return tx.raiseEpochs(accountID, what)
	})
}

// End ends one session of an account, by id, and its sessions on the
// computers it can reach, as nobody can tell which browser opened those; browsers
// still signed in here open them again by themselves. A session that is over is
// no error.
func (s *Sessions) End(ctx context.Context, accountID, id string) error {
	return s.update(ctx, func(tx *txn) error {
		return tx.endSessions(accountID, "another browser", func(row session) bool { return row.ID == id })
	})
}

// EndForComputer is End for the owner of a computer, asked for by that. A browser that was not
// theirs ends with all that was made for their account since it signed in, whether it is still
// signed in or not, as Passkeys.EndForComputer has it.
func (s *Sessions) EndForComputer(ctx context.Context, computerID string, b controlapi.EndBrowser) error {
	mailID := newID()
	return s.update(ctx, func(tx *txn) error {
		c, owner, err := computerWithOwner(tx, computerID)
		if err != nil {
			return err
		}
		if b.Since.IsZero() {
			return tx.endSessions(owner.ID, "another browser", func(row session) bool { return row.ID == b.ID })
		}
		return s.notMe(tx, mailID, c, owner, b.Since,
			words.Of("On %s somebody said that a browser that signed in as you was not yours. You are signed out everywhere.", s.computer(c).Host))
	})
}

// raiseEpochs ends an account's sessions on every computer. What it is kept as says which
// have ended here.
func (t *txn) raiseEpochs(accountID, what string) error {
	t.note("signed-out", accountID, what)
	for computerID := range below(t, keyMemberships(accountID)) {
		_, err := t.changePerson(computerID, Account{ID: accountID}, personSignedOut, until{keep: true}, nil)
		if err != nil && !IsRefusal(err, controlapi.CodeNotFound) {
			return err
		}
	}
	return nil
}

// eachSession are the sessions of an account, with the hash of each.
func eachSession(t *txn, accountID string) iter.Seq2[string, session] {
	return eachOf[session](t, keyAccountSessions(accountID), keySession)
}

// sessionByID is the row of a session, and its hash: "" where it has ended.
func (t *txn) sessionByID(of Session) (hash string, row session) {
	for hash, row := range eachSession(t, of.Account.ID) {
		if row.ID == of.ID {
			return hash, row
		}
	}
	return "", row
}

// List lists an account's sessions, the one used last first.
func (s *Sessions) List(ctx context.Context, accountID string) ([]Session, error) {
	return viewed(ctx, s.core, func(tx *txn) (out []Session, err error) {
		for _, row := range eachSession(tx, accountID) {
			out = append(out, row.of(Account{ID: accountID}))
		}
		slices.SortFunc(out, func(a, b Session) int { return b.LastUsedAt.Compare(a.LastUsedAt) })
		return out, nil
	})
}

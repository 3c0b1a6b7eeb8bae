package control

import (
	"context"
	"time"

	"porchlight/control/audit"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// A browser at /admin has a session of its own, on top of the account's: opened by a passkey
// of the last ten minutes, and over as soon as the role, that passkey or the account's session
// is gone, or the account suspended. Nothing has to end it: each use looks at all of them.

const (
	// OperatorIdle is how long a session at /admin lasts after it was last used.
	OperatorIdle = 15 * time.Minute
	// operatorSlide is to within what its last use is kept.
	operatorSlide = time.Minute
	// operatorLife is how long it lasts at most.
	operatorLife = 12 * time.Hour
)

// operatorSession is stored under the hash of its token.
type operatorSession struct {
	AccountID  string    `json:"accountId"`
	Session    string    `json:"session"` // hash of the account's session that opened it
	Passkey    string    `json:"passkey"` // hash of the passkey that opened that
	OpenedAt   time.Time `json:"openedAt"`
	LastUsedAt time.Time `json:"lastUsedAt"` // to within operatorSlide
}

// NothingThere is how everybody is refused who is no operator.
func NothingThere() error {
	return refuse(controlapi.CodeNotFound, "There is nothing at this address.")
}

// Enter opens a session at /admin for the operator of a session here. It refuses with
// CodeUnauthorized whoever has not shown a passkey in the last ten minutes, whether they are an
// operator or not, and with NothingThere who has and is none.
func (s *Operators) Enter(ctx context.Context, session Session) (token string, err error) {
	if session.Proof != controlapi.ProofPasskey { // which asks the store for nothing
		return "", noSession()
	}
	token = newToken()
	err = s.update(ctx, func(tx *txn) error {
		hash, row := tx.sessionByID(session)
		if hash == "" || len(row.Only) > 0 || row.Proof != controlapi.ProofPasskey || !tx.justProven(row.of(session.Account)) {
			return noSession()
		}
		opened := operatorSession{AccountID: row.AccountID, Session: hash, Passkey: row.Passkey, OpenedAt: tx.now.UTC(), LastUsedAt: tx.now.UTC()}
		if _, may := tx.mayOperate(opened); !may {
			return NothingThere()
		}
		tx.put(keyOperatorSession(hashOf(purposeOperator, token)), opened, OperatorIdle+clocksDiffer)
		tx.note("operator-entered", row.AccountID, "")
		return nil
	})
	if IsRefusal(err, controlapi.CodeNotFound) {
		s.noteOften("operator-refused", session.Account.ID, "")
	}
	return token, err
}

// Entered is the account of a session at /admin, or refuses with CodeUnauthorized.
func (s *Operators) Entered(ctx context.Context, token string) (Account, error) {
	if len(token) != tokenLen {
		return Account{}, noSession()
	}
	hash, now := hashOf(purposeOperator, token), s.now()
	var row operatorSession
	read := func(tx *txn) (account Account, err error) {
		row, err = find[operatorSession](tx, keyOperatorSession(hash), noSession())
		if err != nil || now.Sub(row.LastUsedAt) >= OperatorIdle || now.Sub(row.OpenedAt) >= operatorLife {
			return account, noSession()
		}
		account, may := tx.mayOperate(row)
		if !may {
			return account, noSession()
		}
		return account, nil
	}
	account, err := viewedOf(ctx, s.core, kv.Rows{Keys: []string{keyOperatorSession(hash)}}, read)
	if err != nil || now.Sub(row.LastUsedAt) < operatorSlide {
		return account, err
	}
	return updated(ctx, s.core, func(tx *txn) (Account, error) {
		account, err := read(tx) // it may have ended meanwhile
		if err == nil {
			row.LastUsedAt = now.UTC()
			tx.put(keyOperatorSession(hash), row, OperatorIdle+clocksDiffer)
		}
		return account, err
	})
}

// mayOperate says whether all that a session at /admin stands on is there. A role that was
// taken away and given again is another.
func (t *txn) mayOperate(row operatorSession) (account Account, may bool) {
	role, operator := get[Operator](t, keyOperator(row.AccountID))
	below, signedIn := get[session](t, keySession(row.Session))
	by, has := get[passkey](t, keyPasskey(row.Passkey))
	account, found := get[Account](t, keyAccount(row.AccountID))
	return account, operator && !role.Since.After(row.OpenedAt) && found && account.Suspended.IsZero() &&
		signedIn && below.AccountID == row.AccountID &&
		has && by.AccountID == row.AccountID && !by.Copied
}

// Leave ends a session at /admin and the account's that opened it; an unknown one is no error.
func (s *Operators) Leave(ctx context.Context, token string) error {
	return s.update(ctx, func(tx *txn) error {
		key := keyOperatorSession(hashOf(purposeOperator, token))
		if row, found := get[operatorSession](tx, key); found {
			tx.endSession(row.Session)
			tx.delete(key)
		}
		return nil
	})
}

// Looked keeps that an operator looked at what there is of an account, computer or client.
func (s *Operators) Looked(by, kind, on string) {
	s.cfg.Audit.Add(audit.Event{Kind: "operator-looked", By: by, On: on, What: kind})
}

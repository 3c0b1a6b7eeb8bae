package control

import (
	"context"
	"iter"
	"slices"
	"time"

	"porchlight/control/controlapi"
)

// What is done with logins besides signing in.

// eachLogin are the logins of an account, with the hash of each.
func eachLogin(t *txn, accountID string) iter.Seq2[string, login] {
	return eachOf[login](t, keyAccountLogins(accountID), keyLogin)
}

// ToProve is who came from a provider and is to prove their mail address.
type ToProve struct {
	Label    string // of the provider
	Email    string // as the provider writes it, or ""
	ReturnTo string
}

// LookAtProve reads what Finish gave the browser to keep. It refuses with CodeForbidden.
func (s *Providers) LookAtProve(name, kept string) (ToProve, error) {
	p, err := s.providerNamed(name)
	if err != nil {
		return ToProve{}, err
	}
	proven, ok := openedJSON(s, sealLogin, kept, func(p provenLogin) int64 { return p.Until })
	if !ok || proven.Login.Provider != name {
		return ToProve{}, otherSignIn()
	}
	return ToProve{Label: p.Label, Email: proven.Login.Email, ReturnTo: proven.Return}, nil
}

// Prove is SignIn.Begin for who came from a provider: the mail's link or code binds the login,
// too, where it is used in this browser.
func (s *Providers) Prove(ctx context.Context, name, kept, email string, from Browser) (browserToken string, err error) {
	to, err := s.LookAtProve(name, kept)
	if err != nil {
		return "", err
	}
	proven, _ := openedJSON(s, sealLogin, kept, func(p provenLogin) int64 { return p.Until })
	from.login = &proven.Login
	return s.signIn.Begin(ctx, email, from, to.ReturnTo)
}

// Bind has the login that Finish gave the browser to keep sign in whose session it is, and says
// where the browser was going. It refuses with CodeUnauthorized a session that is not fresh, or
// has ended, and with CodeForbidden as LookAtProve does.
func (s *Providers) Bind(ctx context.Context, session Session, name, kept string, from Asker) (returnTo string, err error) {
	to, err := s.LookAtProve(name, kept)
	if err != nil {
		return "", err
	}
	proven, _ := openedJSON(s, sealLogin, kept, func(p provenLogin) int64 { return p.Until })
	mailID := newID()
	return to.ReturnTo, s.update(ctx, func(tx *txn) error {
		if !tx.stillFresh(session) {
			return refuse(controlapi.CodeUnauthorized, "A provider is added after a passkey or a recovery code of the last ten minutes. Sign in again.")
		}
		return s.bind(tx, mailID, session.Account, proven.Login, from)
	})
}

// Login is one of an account's.
type Login struct {
	ID         string
	Label      string // of the provider, its issuer where the operator took it away
	Email      string // as the provider writes it, or ""
	CreatedAt  time.Time
	LastUsedAt time.Time // zero for never
}

// Of lists the logins of an account, the first one first.
func (s *Providers) Of(ctx context.Context, accountID string) ([]Login, error) {
	return viewed(ctx, s.core, func(tx *txn) (out []Login, err error) {
		for hash, row := range eachLogin(tx, accountID) {
			out = append(out, Login{ID: hash, Label: s.label(row), Email: row.Email, CreatedAt: row.CreatedAt, LastUsedAt: row.LastUsedAt})
		}
		slices.SortFunc(out, func(a, b Login) int { return a.CreatedAt.Compare(b.CreatedAt) })
		return out, nil
	})
}

func (s *core) label(l login) string {
	if p, err := s.providerNamed(l.Provider); err == nil && p.Issuer == l.Issuer {
		return p.Label
	}
	return l.Issuer
}

// Remove ends a login of an account, and the sessions that it opened but for the one of that
// id; one that has ended, and anybody else's, is no error and is left alone.
func (s *Providers) Remove(ctx context.Context, accountID, id, keep string) error {
	return s.update(ctx, func(tx *txn) error {
		if row, found := get[login](tx, keyLogin(id)); !found || row.AccountID != accountID {
			return nil
		}
		tx.deleteLogin(accountID, id)
		return tx.endOpenedBy(accountID, id, keep)
	})
}

func (t *txn) deleteLogin(accountID, hash string) {
	t.delete(keyAccountLogin(accountID, hash), keyLogin(hash))
	t.note("login-removed", accountID, hash)
	t.provide(accountID)
}

// SignedOut does what a provider tells by its logout token (Back-Channel Logout 1.0): the
// sessions that its sign-in opened end, here and on every computer. Somebody who is not known
// is no error. It refuses with CodeInvalid a token that is not the provider's, or came before.
func (s *Providers) SignedOut(ctx context.Context, name, token string) error {
	p, err := s.providerNamed(name)
	if err != nil {
		return err
	}
	out, err := p.SignedOut(ctx, token)
	if err != nil {
		return err
	}
	who, session := hashOf(purposeLogin, p.Issuer, out.Subject), ""
	if out.Session != "" {
		session = hashOf(purposeLoginSession, p.Issuer, out.Session)
	}
	return s.update(ctx, func(tx *txn) error {
		used := keyLogoutUsed(hashOf(purposeLogout, p.Issuer, out.ID))
		if _, before := get[struct{}](tx, used); before {
			return refuse(controlapi.CodeInvalid, "This logout token was used before.")
		}
		tx.put(used, struct{}{}, out.Until.Sub(tx.now)+clocksDiffer)
		row, known := get[login](tx, keyLogin(who))
		if out.Subject == "" {
			row.AccountID, known = get[string](tx, keyLoginSession(session))
		}
		if !known {
			return nil
		}
		for hash, here := range eachSession(tx, row.AccountID) {
			if session != "" && here.LoginSession == session || session == "" && here.Login == who {
				tx.endSession(hash)
			}
		}
		return tx.raiseEpochs(row.AccountID, "by the provider")
	})
}

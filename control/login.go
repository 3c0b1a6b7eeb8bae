package control

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/provider"
	"porchlight/internal/words"
)

// Logins. A login is an account at an OpenID provider that the operator named (provider.Config):
// (iss, sub), bound to one account here. It is bound without a mail only where the provider
// calls the mail address verified and speaks for its domain; else by a mailed link, used in the
// browser that came from the provider. Where the account has a passkey, neither does: a passkey
// of the last ten minutes binds it (Providers.Bind), for whoever reads the mailbox would have a
// way in that stays. From then on it goes by (iss, sub) alone, and whatever else changes is
// refused until it is proven as a new one is. Each new one is told by mail, and to the owner's
// computers. As with passkeys, a ceremony that was only begun keeps nothing here: it is sealed
// into the browser's own state.

const (
	// ProviderLife is how long a sign-in at a provider may take.
	ProviderLife = 15 * time.Minute
	// PathProvider is where the pages of a provider are, under the auth URL, before its name.
	PathProvider = "/signin/with/"
	// PathProviderBack is where a provider leads browsers back to, after its name. Each
	// has its own, so that what one answers is never taken for another's (RFC 9700, section
	// 4.4.2).
	PathProviderBack = "/back"
	// PathProviderLogout is where a provider tells who signed out there, after its name.
	PathProviderLogout = "/logout"

	// maxLogins is how many logins an account has.
	maxLogins = 20
	// pathBind is where a passkey binds a login, after the provider's name.
	pathBind = "/bind"

	// maxKeptReturn keeps the state within what browsers keep of one cookie, in bytes.
	maxKeptReturn = 2200

	sealProvider = "provider sign-in"
	sealLogin    = "login to prove"
)

// Providers are those people sign in with, and all accounts' logins.
type Providers struct {
	*core
	keys   *Keys
	signIn *SignIn
}

// login as stored, under the hash of issuer and subject.
type login struct {
	AccountID  string    `json:"accountId"`
	Provider   string    `json:"provider"` // its name
	Issuer     string    `json:"issuer"`
	Subject    string    `json:"subject"`
	Email      string    `json:"email,omitempty"` // as the provider said when it was bound or proven
	CreatedAt  time.Time `json:"createdAt"`
	LastUsedAt time.Time `json:"lastUsedAt,omitzero"`
	Groups     []string  `json:"groups,omitempty"` // as the provider said at the last sign-in
}

func (l login) hash() string { return hashOf(purposeLogin, l.Issuer, l.Subject) }

// PathBind is where the login that a browser keeps of a provider is bound by a passkey.
func PathBind(name string) string { return PathProvider + name + pathBind }

// begunLogin is a sign-in at a provider, as the browser keeps it, sealed.
type begunLogin struct {
	Provider               string
	State, Nonce, Verifier string
	Return                 string
	Until                  int64 // unix seconds
}

// provenLogin is who came from a provider and is still to be proven, as the browser keeps it.
type provenLogin struct {
	Login  login
	Return string
	Until  int64
}

// All are the providers, in the order of the operator's.
func (s *Providers) All() []*provider.Provider { return s.cfg.Providers }

// providerNamed is the provider of a name.
func (s *core) providerNamed(name string) (*provider.Provider, error) {
	i := slices.IndexFunc(s.cfg.Providers, func(p *provider.Provider) bool { return p.Name == name })
	if i < 0 {
		return nil, refuse(controlapi.CodeNotFound, "There is nothing at this address.")
	}
	return s.cfg.Providers[i], nil
}

func (s *Providers) begun(kept begunLogin) provider.Begun {
	return provider.Begun{
		RedirectURI: s.cfg.AuthURL() + PathProvider + kept.Provider + PathProviderBack,
		State:       kept.State, Nonce: kept.Nonce, Verifier: kept.Verifier,
	}
}

// Begin begins to sign in with the provider of a name: address is where to send the browser,
// kept is for it to keep. Where fresh is set, the provider is to ask who signed in there longer
// ago than FreshFor. It refuses with CodeNotFound, CodeUnavailable, and with CodeForbidden where
// somebody goes to an address that is too long to be kept.
func (s *Providers) Begin(ctx context.Context, name, returnTo string, fresh bool) (address, kept string, err error) {
	p, err := s.providerNamed(name)
	if err != nil {
		return "", "", err
	}
	if len(returnTo) > maxKeptReturn {
		return "", "", controlapi.Refuse(controlapi.CodeForbidden, words.Of("Where you are going has too long an address to go there by %s. Sign in another way.", p.Label))
	}
	begun := begunLogin{
		Provider: name, State: newToken(), Nonce: newToken(), Verifier: newToken(), Return: returnTo, Until: s.now().Add(ProviderLife).Unix(),
	}
	var within time.Duration
	if fresh {
		within = FreshFor
	}
	if address, err = p.Begin(ctx, s.begun(begun), within); err != nil {
		return "", "", err
	}
	return address, sealedJSON(s.keys, sealProvider, begun), nil
}

func sealedJSON(keys *Keys, purpose string, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers
	}
	return keys.Seal(purpose, string(b))
}

// openedJSON is what sealedJSON sealed, while its time is not over; until says which that is.
func openedJSON[T any](s *Providers, purpose, kept string, until func(T) int64) (v T, ok bool) {
	text, ok := s.keys.Unseal(purpose, kept)
	if !ok || json.Unmarshal([]byte(text), &v) != nil {
		return v, false
	}
	left := time.Unix(until(v), 0).Sub(s.now())
	return v, left > 0 && left <= ProviderLife+clocksDiffer
}

func otherSignIn() error {
	return refuse(controlapi.CodeForbidden, "This sign-in was begun in another browser, was used already, or took longer than 15 minutes. Sign in again.")
}

// ProviderUse is what a browser brings back from a provider.
type ProviderUse struct {
	Name  string // of the provider, from the address it came to
	Kept  string // see Begin
	Query url.Values
	Asker
}

// Finish opens a session for a browser that comes back from a provider. Where the provider's
// word does not do, prove is not empty: it is for the browser to keep, and Prove goes on.
// It refuses with CodeForbidden what is not this browser's, or nobody's account; with
// CodeUnavailable where the provider cannot be asked; and with CodeTooMany.
func (s *Providers) Finish(ctx context.Context, use ProviderUse) (in SignedIn, prove string, err error) {
	p, err := s.providerNamed(use.Name)
	if err != nil {
		return SignedIn{}, "", err
	}
	begun, ok := openedJSON(s, sealProvider, use.Kept, func(b begunLogin) int64 { return b.Until })
	if !ok || begun.Provider != use.Name {
		return SignedIn{}, "", otherSignIn()
	}
	if err := s.pace.spend(s.now(), budgetProviders.of(clientKey(use.Client))); err != nil {
		return SignedIn{}, "", err
	}
	claims, err := p.Finish(ctx, s.begun(begun), use.Query)
	if err != nil {
		return SignedIn{}, "", err
	}
	came := login{Provider: p.Name, Issuer: p.Issuer, Subject: claims.Subject, Email: strings.ToLower(claims.Email), Groups: claims.Groups}
	next := newEntry()
	var account Account
	in, err = updated(ctx, s.core, func(tx *txn) (_ SignedIn, err error) {
		if account = (Account{}); tx.answered(begun.State, ProviderLife) {
			return SignedIn{}, otherSignIn()
		}
		if account, err = s.whose(tx, came, claims.Verified, next, use.Asker); err != nil {
			return SignedIn{}, err
		}
		row := session{ID: next.id, AccountID: account.ID, Client: addressOf(use.Client), Proof: controlapi.ProofProvider, Login: came.hash()}
		if row.Proven = claims.AuthTime.UTC(); claims.AuthTime.IsZero() {
			row.Proven = time.Unix(0, 0).UTC()
		}
		if claims.Session != "" {
			row.LoginSession = hashOf(purposeLoginSession, p.Issuer, claims.Session)
		}
		tx.openSession(next.hash, row)
		return SignedIn{Token: next.token, Account: account, ReturnTo: begun.Return, Stale: !tx.justProven(row.of(account))}, nil
	})
	if IsRefusal(err, controlapi.CodeForbidden) && account.ID != "" {
		s.noteOften("sign-in-failed", account.ID, "provider")
	}
	if err == errProve {
		came.Groups = nil // they are read again at the next sign-in, and a cookie is small
		return SignedIn{}, sealedJSON(s.keys, sealLogin, provenLogin{came, begun.Return, s.now().Add(ProviderLife).Unix()}), nil
	}
	return in, "", err
}

// errProve says that a mail has to prove whose a login is.
var errProve = refuse(controlapi.CodeForbidden, "A mail has to prove whose this is.")

// whose is the account of a login, which is bound by the provider's word where that does; also
// where it refuses, as far as it is one's.
func (s *Providers) whose(tx *txn, came login, verified bool, next entry, from Asker) (Account, error) {
	row, bound := get[login](tx, keyLogin(came.hash()))
	if bound {
		if came.Email != "" && came.Email != row.Email {
			return Account{ID: row.AccountID}, kept{errProve}
		}
		changed := !slices.Equal(row.Groups, came.Groups)
		row.LastUsedAt, row.Groups = tx.now.UTC(), came.Groups
		if tx.put(keyLogin(came.hash()), row, 0); changed {
			tx.provide(row.AccountID)
		}
		return find[Account](tx, keyAccount(row.AccountID), otherSignIn())
	}
	email, err := ParseEmail(came.Email)
	if p, _ := s.providerNamed(came.Provider); err != nil || !verified || !p.SpeaksFor(email) {
		return Account{}, kept{errProve}
	}
	account, found := accountByEmail(tx, email)
	if !found && !s.cfg.OpenSignUp {
		return Account{}, controlapi.Refuse(controlapi.CodeForbidden, words.Of("Nobody has invited %s yet. Ask whoever wants to share something with you.", email))
	}
	if account.MailOff && !tx.hasPasskey(account.ID) {
		return account, refuse(controlapi.CodeForbidden, "This account is not signed in by mail, so it takes no provider for it either. Use your passkey.")
	}
	if found && (tx.hasPasskey(account.ID) || tx.hasLoginAt(account.ID, came.Issuer)) {
		return account, kept{errProve}
	}
	account = tx.ensureAccount(next.accountID, email)
	came.LastUsedAt = tx.now.UTC()
	return account, s.bind(tx, next.mailID, account, came, from)
}

// hasLoginAt says whether an account has a login of an issuer.
func (t *txn) hasLoginAt(accountID, issuer string) bool {
	for _, row := range eachLogin(t, accountID) {
		if row.Issuer == issuer {
			return true
		}
	}
	return false
}

// bind gives a login to an account, which is told, or has the account's own say what was proven
// now.
func (s *core) bind(t *txn, mailID string, account Account, l login, from Asker) error {
	row, bound := get[login](t, keyLogin(l.hash()))
	if bound && row.AccountID != account.ID {
		return refuse(controlapi.CodeInvalid, "That account of the provider belongs to another address here. Sign in with that one, or remove it there first.")
	}
	if !bound && len(t.scan(keyAccountLogins(account.ID), "", maxLogins)) >= maxLogins {
		return refuse(controlapi.CodeInvalid, "You sign in with 20 accounts of providers, which is as many as there can be. Remove one in your account.")
	}
	if l.AccountID, l.CreatedAt = account.ID, t.now.UTC(); bound {
		l.CreatedAt = row.CreatedAt
	}
	t.put(keyLogin(l.hash()), l, 0)
	t.put(keyAccountLogin(account.ID, l.hash()), struct{}{}, 0)
	t.note("login-bound", account.ID, l.hash()+" of "+l.Issuer)
	t.provide(account.ID)
	if bound {
		return nil
	}
	t.addedPasskey(account.ID, controlapi.AddedPasskey{ID: l.hash(), Name: s.label(l), Client: addressOf(from.Client), At: l.CreatedAt, Provider: true})
	return s.tell(t, mailID, account, from, words.Of("%s signs you in now", s.label(l)),
		words.Of("An account at %[1]s signs in at %[2]s as you from now on, without a mail.", s.label(l), s.cfg.AuthHostPort()),
		words.Of("Was it not you? Open your account, remove %s there, and sign out everywhere else.", s.label(l)))
}

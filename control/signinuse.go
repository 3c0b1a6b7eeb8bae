package control

import (
	"context"
	"crypto/subtle"
	"net/netip"
	"strings"

	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// The use of a sign-in mail's link, or of its code, which opens a session.

// codeTries is how many codes a browser may try for one mail.
const codeTries = 5

// SignedIn is a completed sign-in.
type SignedIn struct {
	Token    string // of the new session, in clear
	Account  Account
	ReturnTo string // where the browser was going, as given to SignIn.Begin, or ""
	// Stale says that a provider did not just ask who they are.
	Stale bool
}

func linkOver() error {
	return refuse(controlapi.CodeNotFound, "This link was used already, or its 15 minutes are over. Ask for a new one.")
}

// SignInLink is what a link does.
type SignInLink struct {
	Email    string // of whom it signs in
	ReturnTo string // where it leads
	// Label and Login are the provider whose login it binds, and the mail address that the
	// provider writes or ""; both empty where it binds none.
	Label, Login string
	// ByComputer says that a computer of theirs made it, and no mail has it.
	ByComputer bool
}

// LookAtLink says what a link does in the browser with this token, which may be empty, and
// consumes nothing: mail scanners open links. It refuses with CodeNotFound.
func (s *SignIn) LookAtLink(ctx context.Context, link, browserToken string) (SignInLink, error) {
	if len(link) != tokenLen {
		return SignInLink{}, linkOver()
	}
	row, err := viewed(ctx, s.core, func(tx *txn) (signIn, error) {
		row, err := find[signIn](tx, keySignIn(hashOf(purposeLink, link)), linkOver())
		account, _ := accountByEmail(tx, row.Email)
		if err == nil && !tx.mayLink(row, account) {
			err = linkOver()
		}
		if tx.hasPasskey(account.ID) {
			row.Login = nil
		}
		return row, err
	})
	out := SignInLink{Email: row.Email, ReturnTo: row.ReturnTo, ByComputer: row.Computer != ""}
	if row.begunBy(hashOf(purposeBrowser, browserToken)) && row.Login != nil {
		out.Label, out.Login = s.label(*row.Login), row.Login.Email
	}
	return out, err
}

// begunBy says whether the browser of this hash asked for the mail.
func (row signIn) begunBy(browserHash string) bool {
	return subtle.ConstantTimeCompare([]byte(row.BrowserHash), []byte(browserHash)) == 1
}

// WithLink uses a link up and opens a session for the browser that sent it, whose token may
// be empty. It refuses with CodeNotFound, and with CodeForbidden where it would bind the login
// of another account.
func (s *SignIn) WithLink(ctx context.Context, link, browserToken string, client netip.Addr) (SignedIn, error) {
	if len(link) != tokenLen {
		return SignedIn{}, linkOver()
	}
	next := newEntry()
	hash := hashOf(purposeLink, link)
	return updated(ctx, s.core, func(tx *txn) (SignedIn, error) {
		row, err := find[signIn](tx, keySignIn(hash), linkOver())
		if err != nil {
			return SignedIn{}, err
		}
		return s.complete(tx, next, hash, row, hashOf(purposeBrowser, browserToken), client)
	})
}

// WrongCode is how WithCode refuses: the same for a wrong code, one that is over, and an
// address that never got a mail.
func WrongCode() error {
	return refuse(controlapi.CodeForbidden, "That code is not right, or it is over. After five tries a new mail is needed.")
}

// WithCode uses up the code of the mail that the browser with this token
// asked for. Five wrong ones end it, and twenty in a day, however many mails were
// asked for, all codes sent to that address; links still work. It refuses with WrongCode
// (CodeForbidden).
func (s *SignIn) WithCode(ctx context.Context, browserToken, code string, client netip.Addr) (SignedIn, error) {
	wrong := WrongCode()
	code = digits(code)
	next := newEntry()
	browser := hashOf(purposeBrowser, browserToken)
	given := hashOf(purposeCode, browserToken, code)
	return updated(ctx, s.core, func(tx *txn) (SignedIn, error) {
		// Tries are counted whether there is a mail or not: the same is written
		// for every address.
		tries, _ := get[int](tx, keySignInTries(browser))
		if tries >= codeTries {
			return SignedIn{}, wrong
		}
		tx.put(keySignInTries(browser), tries+1, SignInLife)
		hash, err := find[string](tx, keySignInBrowser(browser), kept{wrong})
		if err != nil {
			return SignedIn{}, err
		}
		row, err := find[signIn](tx, keySignIn(hash), kept{wrong})
		if err != nil {
			return SignedIn{}, err
		}
		guesses := budgetGuesses.of(row.Email)
		if tx.affords(guesses) != nil {
			return SignedIn{}, kept{wrong}
		}
		if subtle.ConstantTimeCompare([]byte(row.CodeHash), []byte(given)) != 1 {
			if err := tx.spend(guesses); err != nil {
				return SignedIn{}, err
			}
			if account, found := accountByEmail(tx, row.Email); found {
				tx.note("sign-in-failed", account.ID, "code")
			}
			return SignedIn{}, kept{wrong}
		}
		in, err := s.complete(tx, next, hash, row, browser, client)
		if IsRefusal(err, controlapi.CodeNotFound) {
			err = kept{wrong}
		}
		return in, err
	})
}

// digits keeps the digits of what a person typed, at most seven of them: more
// than a code has can only be wrong.
func digits(typed string) string {
	var b strings.Builder
	for _, r := range typed {
		if r >= '0' && r <= '9' && b.Len() < 7 {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// entry is what a session needs that must be made before the transaction.
type entry struct{ token, hash, id, accountID, mailID string }

func newEntry() entry {
	token := newToken()
	return entry{token: token, hash: hashOf(purposeSession, token), id: newID(), accountID: newID(), mailID: newID()}
}

// mayLink says whether a link signs an account in: a mailed one unless its person turned
// that off, and one of a computer while that is theirs and connected.
func (t *txn) mayLink(row signIn, account Account) bool {
	if row.Computer == "" {
		return !account.MailOff
	}
	c, _ := get[computer](t, keyComputer(row.Computer))
	return c.OwnerID == account.ID && c.CredentialHash != ""
}

// complete ends an attempt and opens the session it was for. In the browser that began it binds
// the login, too: anybody else's link that somebody was made to open binds nothing. Who has a
// passkey is led to where that binds it.
func (s *SignIn) complete(t *txn, e entry, linkHash string, row signIn, browserHash string, client netip.Addr) (SignedIn, error) {
	t.delete(keySignIn(linkHash), keySignInBrowser(row.BrowserHash), keySignInTries(row.BrowserHash))
	account, found := accountByEmail(t, row.Email)
	if !found {
		if !s.cfg.OpenSignUp {
			return SignedIn{}, linkOver()
		}
		account = t.ensureAccount(e.accountID, row.Email)
	}
	if !t.mayLink(row, account) {
		return SignedIn{}, linkOver()
	}
	opened := session{ID: e.id, AccountID: account.ID, Client: addressOf(client)}
	if row.Computer != "" {
		opened.Proof = controlapi.ProofCode
	}
	if row.Login != nil && row.begunBy(browserHash) {
		if t.hasPasskey(account.ID) {
			row.ReturnTo = PathBind(row.Login.Provider)
		} else if err := s.bind(t, e.mailID, account, *row.Login, Asker{client, words.Accepted(row.Language)}); err != nil {
			return SignedIn{}, err
		}
	}
	t.noteFamiliar(row.Email, client)
	t.openSession(e.hash, opened)
	return SignedIn{Token: e.token, Account: account, ReturnTo: row.ReturnTo}, nil
}

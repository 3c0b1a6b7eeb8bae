package control

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/mail"
	"porchlight/internal/bounds"
	"porchlight/internal/words"
)

// Signing in by mail. SignIn.Begin answers the same for every address, before
// anything is looked up or written; a worker of Run then writes the mail when
// the address has an account. The mail carries a link, which signs in the
// browser it is clicked in, and a code, which signs in the browser that began
// and no other. Either ends both.

const (
	// SignInLife is how long a link and its code can be used.
	SignInLife = 15 * time.Minute
	// PathSignInLink is where the mailed link leads, under the auth URL, with
	// the token as parameter "token".
	PathSignInLink = "/signin/link"

	// answerHead is by how much, at least and at most, an answer goes before the
	// work for it. That work is more for an address that has an account, and done
	// at the same time it would slow the answer down by as much as to tell.
	answerHead, answerHeadMost = 20 * time.Millisecond, 60 * time.Millisecond

	signInWorkers = 4
	// restartTime is what somebody is asked to wait for the next process.
	restartTime = 10 * time.Second
	// finishIn is how long sign-ins already answered may take once Run is told
	// to stop.
	finishIn = 3 * time.Second
)

// SignIn is signing in by mail.
type SignIn struct {
	*core
	keys     *Keys
	attempts chan attempt // answered, whose mail is still to be written
	intake   intake       // of attempts
}

// attempt is a sign-in that was answered.
type attempt struct {
	email    string
	client   string // see clientKey
	wide     string // see wideNetwork
	known    string // device of a known browser, else ""
	familiar bool   // of the address with this client, see familiar
	returnTo string
	language words.Language
	login    *login // to bind, or nil
	link     string // token, in clear until it is in the mail
	code     string
	browser  string // hash of the browser's token
	codeHash string
	from     time.Time // when a worker may begin; see answerHead
}

// budgets are the budgets a sign-in spends from.
func (a attempt) budgets() []subject {
	switch {
	case a.known != "":
		return []subject{budgetKnown.of(a.known, a.email)}
	case a.familiar:
		return []subject{budgetClient.of(a.client), budgetFamiliar.of(a.email, a.client)}
	}
	return []subject{budgetClient.of(a.client), budgetPair.of(a.email, a.wide), budgetRecipient.of(a.email)}
}

// wayOut adds to the refusal of a browser that is not known what can be done about
// it. It is the same for every address.
func (a attempt) wayOut(err error) error {
	refusal, ok := errors.AsType[*controlapi.Error](err)
	if !ok || refusal.Code != controlapi.CodeTooMany || a.known != "" {
		return err
	}
	return &controlapi.Error{
		Code: refusal.Code, Message: refusal.Message + " " + otherBrowser, HTTPStatus: refusal.HTTPStatus, RetryAfter: refusal.RetryAfter,
		Words: words.Of("%s %s", refusal.Sentence(), words.Plain(otherBrowser)),
	}
}

const otherBrowser = "A browser that is signed in with this address can have a link mailed on its account page, and that link works in this browser, too."

// signIn is an attempt as stored, under the hash of its link.
type signIn struct {
	Email       string `json:"email"`
	BrowserHash string `json:"browserHash"`
	CodeHash    string `json:"codeHash"` // of browser token and code together
	ReturnTo    string `json:"returnTo,omitempty"`
	// Computer is the id of the one that made the link for its owner, without a mail; see
	// Recovery.Link.
	Computer string `json:"computer,omitempty"`
	// Login is bound, too, where the browser that began comes back, whose page speaks
	// Language, by its tag.
	Login    *login `json:"login,omitempty"`
	Language string `json:"language,omitempty"`
}

// Browser is where a sign-in begins.
type Browser struct {
	Client netip.Addr // the address it asks from
	Known  string     // what Remember returned for it, or ""
	// Language is what its page speaks, and so the mail.
	Language words.Language
	// login is what it is to prove besides, or nil.
	login *login
}

// intake is the way into SignIn.attempts. Once it is shut nothing more comes in,
// so a queue that is emptied then stays empty.
type intake struct {
	mu   sync.RWMutex // held for reading while an attempt is put into the queue
	shut bool         // guarded by mu
}

func (i *intake) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.shut = true
}

// Begin answers a browser that wants to sign in with a canonical address.
// The token returned belongs in a cookie of that browser: the mailed code works
// only together with it. It refuses with CodeTooMany when a budget is spent and
// with CodeUnavailable when mails cannot be written fast enough, or not any more
// because Run has ended; none depends on whether the address has an account.
func (s *SignIn) Begin(ctx context.Context, email string, from Browser, returnTo string) (browserToken string, err error) {
	browserToken = newToken()
	known, _ := s.knownFor(from.Known, email)
	a := attempt{
		email: email, client: clientKey(from.Client), wide: wideNetwork(from.Client), known: known, returnTo: returnTo, language: from.Language, login: from.login,
		link: newToken(), code: newCode(), browser: hashOf(purposeBrowser, browserToken),
	}
	a.familiar, err = viewed(ctx, s.core, func(tx *txn) (bool, error) {
		a := a
		a.familiar = tx.familiar(email, a.client)
		return a.familiar, tx.affords(a.budgets()...)
	})
	if err != nil {
		return "", a.wayOut(err)
	}
	s.intake.mu.RLock()
	defer s.intake.mu.RUnlock()
	if s.intake.shut {
		return "", &controlapi.Error{
			Code: controlapi.CodeUnavailable, RetryAfter: restartTime,
			Message: "This service is just restarting. No mail was sent; try again in a moment.",
		}
	}
	if err := s.pace.spend(s.now(), a.budgets()...); err != nil {
		return "", a.wayOut(err)
	}
	// The code alone could be found from its hash by trying a million; with the
	// browser's token in it, only that browser can.
	a.codeHash = hashOf(purposeCode, browserToken, a.code)
	// By the machine's clock, not that of Config: only this process waits for it.
	a.from = time.Now().Add(answerHead + rand.N(answerHeadMost-answerHead))
	select {
	case s.attempts <- a:
		return browserToken, nil
	default:
		return "", refuse(controlapi.CodeUnavailable, "Too many people are signing in right now. Try again in a minute.")
	}
}

// run writes the mails of answered sign-ins until ctx is done, and then
// those still waiting.
func (s *SignIn) run(ctx context.Context) error {
	for {
		select {
		case a := <-s.attempts:
			begin := time.NewTimer(time.Until(a.from))
			select {
			case <-begin.C:
			case <-ctx.Done():
				begin.Stop()
			}
			s.write(context.WithoutCancel(ctx), a) // it was answered, so it is written
		case <-ctx.Done():
			s.intake.close()
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishIn)
			defer cancel()
			for {
				select {
				case a := <-s.attempts:
					s.write(last, a)
				default:
					return ctx.Err()
				}
			}
		}
	}
}

func (s *SignIn) write(ctx context.Context, a attempt) {
	message, err := mail.SignIn{
		To:      a.email,
		Link:    s.cfg.AuthURL() + PathSignInLink + "?" + url.Values{"token": {a.link}}.Encode(),
		Code:    a.code[:3] + " " + a.code[3:],
		Host:    s.cfg.AuthHostPort(),
		Minutes: int(SignInLife / time.Minute),

		Language: a.language,
	}.Message()
	without, alsoErr := s.withoutMail(a)
	if err = cmp.Or(err, alsoErr); err != nil {
		s.log.Error("composing a sign-in mail failed", "err", err)
		return
	}
	mailID := newID()
	err = s.update(ctx, func(tx *txn) error {
		if err := tx.spend(a.budgets()...); err != nil {
			return err
		}
		account, found := accountByEmail(tx, a.email)
		switch {
		case account.MailOff:
			s.putMail(tx, mailID, without)
			return nil
		case !found && !s.cfg.OpenSignUp:
			return nil
		}
		hash := hashOf(purposeLink, a.link)
		row := signIn{Email: a.email, BrowserHash: a.browser, CodeHash: a.codeHash, ReturnTo: a.returnTo, Login: a.login}
		if a.login != nil {
			row.Language = a.language.Tag()
		}
		tx.put(keySignIn(hash), row, SignInLife)
		tx.put(keySignInBrowser(a.browser), hash, SignInLife)
		s.putMail(tx, mailID, message)
		return nil
	})
	switch {
	case err == nil:
	case IsRefusal(err, controlapi.CodeTooMany):
		s.log.Info("a sign-in mail was not written: its budget is spent")
	default:
		s.log.Error("writing a sign-in mail failed", "err", err)
	}
}

// withoutMail is what somebody is mailed in place of a link whose account mail does not
// sign in: where it does.
func (s *SignIn) withoutMail(a attempt) (mail.Message, error) {
	to, returnTo := s.cfg.AuthURL()+"/signin", a.returnTo
	if a.login != nil {
		returnTo = PathBind(a.login.Provider)
	}
	if returnTo != "" {
		to += "?" + url.Values{"return": {returnTo}}.Encode()
	}
	return mail.Account{
		To: a.email, Subject: words.Of("Sign in with your passkey"),
		Says: []words.Sentence{
			words.Of("Somebody asked for a link to sign in at %s. You turned that off: your passkey signs you in there, or a recovery code.", s.cfg.AuthHostPort()),
			words.Of("If that was not you, ignore this mail; nothing happens."),
		},
		Link: to, Button: words.Of("Sign in"), Language: a.language,
	}.Message()
}

// clientKey is what stands for a client address in budgets: an IPv4 address, or
// the /64 an IPv6 client chooses its addresses from.
func clientKey(a netip.Addr) string {
	network := bounds.Network(a, 32, 64)
	switch {
	case !network.IsValid():
		return "unknown"
	case network.IsSingleIP():
		return network.Addr().String()
	}
	return network.String()
}

// TurnOf names whose the calls of a store are for a client of whom nothing else is
// known yet: its network's.
func TurnOf(client netip.Addr) string { return "network " + clientKey(client) }

// wideNetwork is what holds the addresses one party easily has: an IPv4 /24, or an
// IPv6 /48, which is what a place is given and would be 65,536 networks.
func wideNetwork(a netip.Addr) string {
	if network := bounds.Network(a, 24, 48); network.IsValid() {
		return network.String()
	}
	return "unknown"
}

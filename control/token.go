package control

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"porchlight/control/controlapi"
)

// The tokens of OAuth (docs/interface.md, OAuth; RFC 6749 and RFC 7636): consent
// makes a code, the code a grant with a first pair of tokens, and each refresh
// token the next pair. A client is always authenticated before anything is used
// up.

// authorizationLife is how long a code can be exchanged.
const authorizationLife = 60 * time.Second

// usedForNone is no id of a grant.
const usedForNone = "none"

// usedCodeLife is how long a used code is remembered, to notice it come again.
const usedCodeLife = 24 * time.Hour

// Authorization is what a person is asked to allow. Its parts are well formed;
// Client and RedirectURI belong together.
type Authorization struct {
	ClientID    string
	RedirectURI string
	Challenge   string // base64url of a SHA-256, 43 characters
	// Apps are the ids of the apps that the client is let into; empty for all. Asked are
	// those that it asked for.
	Apps, Asked []string
}

// authorization is a code as stored, under its hash.
type authorization struct {
	ClientID    string    `json:"clientId"`
	RedirectURI string    `json:"redirectUri"`
	Challenge   string    `json:"challenge"`
	AccountID   string    `json:"accountId"`
	ComputerID  string    `json:"computerId"`
	At          time.Time `json:"at,omitzero"` // when it was issued
	// Apps and Asked are as those of the grant.
	Apps  []string `json:"apps,omitempty"`
	Asked []string `json:"asked,omitempty"`
	// UsedFor is the grant that the code was exchanged for, or usedForNone when a
	// wrong request used it up; empty before. The client is all that is kept with
	// it: a node of an earlier version, which does not know this field, would give
	// tokens for the rest.
	UsedFor string `json:"usedFor,omitempty"`
}

// Authorize issues a code: the account allows the client to open apps on the
// computer of that short name. It refuses with CodeForbidden when the account
// cannot reach such a computer.
func (s *Grants) Authorize(ctx context.Context, a Authorization, account Account, short string) (code string, err error) {
	if !ValidChallenge(a.Challenge) {
		return "", refuse(controlapi.CodeInvalid, "The code challenge is not one of S256.")
	}
	if err := s.pace.spend(s.now(), budgetConsents.of(account.ID)); err != nil {
		return "", err
	}
	code = newToken()
	err = s.update(ctx, func(tx *txn) error {
		if _, err := clientFor(tx, a.ClientID, a.RedirectURI); err != nil {
			return err
		}
		unreachable := refuse(controlapi.CodeForbidden, "You cannot open anything on that computer.")
		c, err := findByName(tx, short, unreachable)
		if err != nil {
			return err
		}
		if err := tx.refuseSuspendedAt(c, account.ID); err != nil {
			return err
		}
		if !mayReach(tx, c.ID, account.ID) {
			return unreachable
		}
		if err := tx.mayAllow(c, account.ID, a.ClientID, a.Apps); err != nil {
			return err
		}
		tx.put(keyAuthorization(hashOf(purposeAuthCode, code)), authorization{
			ClientID: a.ClientID, RedirectURI: a.RedirectURI, Challenge: a.Challenge,
			AccountID: account.ID, ComputerID: c.ID, At: tx.now.UTC(), Apps: withApps(nil, a.Apps), Asked: a.Asked,
		}, authorizationLife)
		return nil
	})
	if err != nil {
		return "", err
	}
	return code, nil
}

// mayAllow refuses apps that an account cannot let a client into, because it cannot open
// them, because its agent would open all, or because there are too many; and apps that are
// not for this client.
func (t *txn) mayAllow(c computer, accountID, clientID string, apps []string) error {
	if clientID == controlapi.ReachClient && len(apps) != 1 {
		return refuse(controlapi.CodeForbidden, "This program opens one app at a time. Choose one.")
	}
	if len(apps) > 0 && !c.AppGrants {
		return refuse(controlapi.CodeForbidden, sayOldAgent)
	}
	p, _ := get[person](t, keyPerson(c.ID, accountID))
	p = p.asOf(t.now)
	reported, _ := get[[]controlapi.App](t, keyComputerApps(c.ID))
	for _, id := range apps {
		if !slices.ContainsFunc(reported, func(a controlapi.App) bool { return a.ID == id && a.Live && p.mayOpen(id) && isFor(a, clientID) }) {
			return refuse(controlapi.CodeForbidden, "You cannot open one of these apps any more. Choose again.")
		}
	}
	return t.roomForApps(c.ID, withApps(nil, apps))
}

// isFor says whether an app is one that a client may ever open: those reached by TCP are
// for the one that is built in, and it is for these alone.
func isFor(a controlapi.App, clientID string) bool {
	return a.TCP == (clientID == controlapi.ReachClient)
}

// sayOldAgent is told who wants to let a client into single apps of a computer that does
// not know of such grants.
const sayOldAgent = "Porchlight on that computer is too old to let a program into single apps. Update it there, or allow all of its apps."

// mayReach says whether an account is active on a computer.
func mayReach(tx *txn, computerID, accountID string) bool {
	p, found := get[person](tx, keyPerson(computerID, accountID))
	return found && p.mayOpen("")
}

// Redirection is a redirect URI with parameters added to its query. Spaces are
// written so that every decoder reads them.
func Redirection(redirectURI string, params url.Values) string {
	sep := "?"
	if strings.HasSuffix(redirectURI, "?") || strings.HasSuffix(redirectURI, "&") {
		sep = ""
	} else if strings.Contains(redirectURI, "?") {
		sep = "&"
	}
	return redirectURI + sep + strings.ReplaceAll(params.Encode(), "+", "%20")
}

// Tokens are handed to a client, this once.
type Tokens struct {
	Access   string // compact JWS, valid controlapi.TokenLife
	Refresh  string
	Computer controlapi.Computer
}

// Exchange is a code with the proof that the client began the authorization.
type Exchange struct {
	Code        string
	RedirectURI string
	Verifier    string
}

// key is the row of the code.
func (x Exchange) rowKey() string { return keyAuthorization(hashOf(purposeAuthCode, x.Code)) }

// noGrant says which part of a request is not good. It is told to authenticated
// clients only, and of what is another client's it says no more than of nothing.
func noGrant(why string) error { return refuse(controlapi.CodeInvalidGrant, why) }

const (
	whyNoCode       = "The code is unknown, older than 60 seconds, or not this client's."
	whyCodeUsed     = "The code was used before. What it gave has ended."
	whyRedirect     = "The redirect_uri is not the one of the authorization request. The code is used up."
	whyVerifier     = "The code_verifier does not fit the code_challenge. The code is used up."
	whyVerifierForm = "The code_verifier must have 43 to 128 letters, digits, and - . _ ~ (RFC 7636)."
	whyUnreachable  = "The person cannot reach that computer any more. The code is used up."
	whyNoApps       = "The apps that the person chose are not there any more. The code is used up."
	whyOldAgent     = "Porchlight on that computer is too old for a grant of single apps. Have it updated there."
	whyNoToken      = "The refresh token is unknown, too old, or not this client's."
	whyTokenUsed    = "The refresh token was used before. Use the one that came with the last answer."
	whyDropped      = "The login was ended: its client had too many for this person, its code was used twice, or it was narrowed to single apps."
)

// errUsedTwice is of a code that comes a second time.
var errUsedTwice = noGrant(whyCodeUsed)

func accessEnded() error {
	return refuse(controlapi.CodeAccessDenied, "The person has ended this app's access.")
}

// Exchange makes a grant of a code. It refuses with CodeInvalidClient, and
// then the code is untouched, or with CodeInvalidGrant; a code presented by its
// own client is used up whatever else is wrong. One that comes a second time has
// been copied by somebody, so what it gave ends (RFC 6749, section 4.1.2).
//
// With resources it may be for less than the code (RFC 8707); it refuses with
// CodeInvalidTarget what is not in that.
func (s *Grants) Exchange(ctx context.Context, cred Credentials, x Exchange, resources ...string) (Tokens, error) {
	// Checked before: strangers cannot make the store write.
	cred, err := s.clients.authenticated(ctx, cred)
	if err != nil {
		return Tokens{}, err
	}
	if len(x.Code) != tokenLen {
		return Tokens{}, noGrant(whyNoCode)
	}
	if !verifierPattern.MatchString(x.Verifier) {
		return Tokens{}, noGrant(whyVerifierForm)
	}
	id, secret := newID(), newToken()

	var c computer
	var refresh string
	g, err := updated(ctx, s.core, func(tx *txn) (grant, error) {
		client, err := authenticateClient(tx, cred) // it may have been removed just now
		if err == nil {
			err = tx.refuseSuspendedClient(client.ID)
		}
		if err != nil {
			return grant{}, err
		}
		code, err := tx.useUp(client.ID, x)
		if err != nil {
			return grant{}, err
		}
		var account Account
		if account, c, err = tx.between(code); err != nil {
			return grant{}, err
		}
		if code.Apps, err = tx.stillThere(c.ID, code.Apps); err != nil {
			return grant{}, err
		}
		if code.Apps, code.Asked, err = s.narrowed(tx, c, account.ID, client.ID, code.Apps, code.Asked, resources); err != nil {
			return grant{}, kept{err}
		}
		if len(code.Apps) > 0 && !c.AppGrants {
			return grant{}, kept{noGrant(whyOldAgent)}
		}
		tx.makeRoom(account.ID, client.ID)
		id := id
		if len(code.Apps) > 0 {
			id = controlapi.LimitedGrantID(id)
		}
		tx.noteUse(client.ID, x, id)
		refresh = refreshToken(id, secret)
		g := grant{
			ID: id, AccountID: account.ID, Email: account.Email, ClientID: client.ID, ClientName: client.Name,
			ComputerID: c.ID, RefreshHash: hashOf(purposeRefresh, refresh), CreatedAt: tx.now.UTC(), Apps: code.Apps, Asked: code.Asked,
		}
		tx.putGrant(g)
		tx.note("grant-given", g.AccountID, g.ID+" to "+g.ClientID+" at "+g.ComputerID)
		return g, nil
	})
	if errors.Is(err, errUsedTwice) {
		s.log.Warn("an authorization code was used twice; what it gave has ended", "client", cred.ID)
	}
	if err != nil {
		return Tokens{}, err
	}
	return s.tokens(g, c, refresh)
}

// useUp uses the code of a client up, whatever else is wrong with what came with it, and
// returns what it was given for. One that was used before ends what it gave.
func (tx *txn) useUp(clientID string, x Exchange) (authorization, error) {
	code, err := find[authorization](tx, x.rowKey(), noGrant(whyNoCode))
	if err != nil {
		return authorization{}, err
	}
	switch {
	case code.ClientID != clientID:
		return authorization{}, noGrant(whyNoCode)
	case code.UsedFor != "":
		tx.dropGiven(code.UsedFor)
		return authorization{}, kept{errUsedTwice}
	}
	tx.noteUse(clientID, x, usedForNone)
	switch {
	case code.RedirectURI != x.RedirectURI:
		return authorization{}, kept{noGrant(whyRedirect)}
	case !proves(x.Verifier, code.Challenge):
		return authorization{}, kept{noGrant(whyVerifier)}
	}
	return code, nil
}

// noteUse keeps of a code only whose it was, and what it was used for.
func (tx *txn) noteUse(clientID string, x Exchange, usedFor string) {
	tx.put(x.rowKey(), authorization{ClientID: clientID, UsedFor: usedFor}, usedCodeLife)
}

// between is whom a code is about: a person, and a computer that they can still reach.
func (tx *txn) between(code authorization) (account Account, c computer, err error) {
	unreachable := kept{noGrant(whyUnreachable)}
	if account, err = find[Account](tx, keyAccount(code.AccountID), unreachable); err != nil {
		return Account{}, computer{}, err
	}
	if c, err = find[computer](tx, keyComputer(code.ComputerID), unreachable); err != nil {
		return Account{}, computer{}, err
	}
	if err := tx.refuseSuspendedAt(c, account.ID); err != nil {
		return Account{}, computer{}, kept{err}
	}
	if !mayReach(tx, c.ID, account.ID) || code.At.Before(account.NotBefore) {
		return Account{}, computer{}, unreachable
	}
	return account, c, nil
}

// stillThere are those apps that a computer has not revoked since they were chosen.
func (tx *txn) stillThere(computerID string, apps []string) ([]string, error) {
	if len(apps) == 0 {
		return nil, nil
	}
	reported, _ := get[[]controlapi.App](tx, keyComputerApps(computerID))
	still := withoutApps(apps, func(id string) bool {
		return !slices.ContainsFunc(reported, func(a controlapi.App) bool { return a.ID == id })
	})
	if len(still) == 0 {
		return nil, kept{noGrant(whyNoApps)}
	}
	return still, nil
}

// refreshToken is the id of a grant and a secret of newToken. The id finds the
// grant of a used token without a row for each; it is no secret.
func refreshToken(grantID, secret string) string { return grantID + "." + secret }

func grantOfToken(token string) (grantID string, ok bool) {
	id, secret, ok := strings.Cut(token, ".")
	return id, ok && len(secret) == tokenLen && idPattern.MatchString(id)
}

// tokens signs the access token that goes with a grant's new refresh token.
func (s *Grants) tokens(g grant, c computer, refresh string) (Tokens, error) {
	out := Tokens{Refresh: refresh, Computer: s.computer(c)}
	now := s.now()
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, controlapi.AccessClaims{
		Issuer:   controlapi.TokenIssuer,
		Subject:  g.AccountID,
		Email:    g.Email,
		Audience: out.Computer.Host,
		ClientID: g.ClientID,
		Grant:    g.ID,
		Scope:    controlapi.TokenScope,
		IssuedAt: now.Unix(),
		Expires:  now.Unix() + int64(controlapi.TokenLife/time.Second),
		ID:       newID(),
	})
	signer := s.keyRing.Load().signer(now)
	token.Header["kid"] = signer.jwk.ID
	var err error
	if out.Access, err = token.SignedString(signer.private); err != nil {
		return Tokens{}, fmt.Errorf("signing an access token: %w", err)
	}
	return out, nil
}

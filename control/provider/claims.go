package provider

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

const (
	// clocksDiffer is by how much a provider's clock may be ahead of ours.
	clocksDiffer = 5 * time.Minute
	maxSubject   = 255 // bytes, of sub (Core, section 2) and sid
	maxEmail     = 254 // bytes; one that is longer is none
	maxGroups    = 100 // of somebody; more are passed over, and so are longer names
	maxGroupName = 100 // bytes
)

// Begun is a sign-in under way, as the browser keeps it.
type Begun struct {
	RedirectURI            string
	State, Nonce, Verifier string
}

// Begin is where to send a browser. Where fresh is not zero, whoever signed in at the
// provider longer ago than that is to do so again.
func (p *Provider) Begin(ctx context.Context, b Begun, fresh time.Duration) (string, error) {
	f, err := p.as(ctx)
	if err != nil {
		return "", err
	}
	more := []oauth2.AuthCodeOption{oidc.Nonce(b.Nonce), oauth2.S256ChallengeOption(b.Verifier)}
	if fresh > 0 {
		more = append(more, oauth2.SetAuthURLParam("max_age", strconv.Itoa(int(fresh/time.Second))))
	}
	return p.oauth(f, b.RedirectURI).AuthCodeURL(b.State, more...), nil
}

// Claims are what a provider says of somebody who has just signed in.
type Claims struct {
	Subject string // sub, which with the issuer is who they are
	Session string // sid, "" where the provider does not tell
	// Email is as the provider writes it, "" where it does not tell.
	Email    string
	Verified bool
	AuthTime time.Time // zero where the provider does not tell
	Groups   []string  // those that Config.Groups names, sorted
}

// Finish checks what a browser brought back for a sign-in, and asks the provider for the
// rest.
func (p *Provider) Finish(ctx context.Context, b Begun, query url.Values) (Claims, error) {
	f, err := p.as(ctx)
	if err != nil {
		return Claims{}, err
	}
	if err := p.came(f, b, query); err != nil {
		return Claims{}, p.refusal("the way back", err)
	}
	ctx = oidc.ClientContext(ctx, p.client)
	token, err := p.oauth(f, b.RedirectURI).Exchange(ctx, query.Get("code"), oauth2.VerifierOption(b.Verifier))
	if err != nil {
		return Claims{}, p.refusal("the code", err)
	}
	claims, err := p.claimsOf(ctx, f, b, token)
	if err != nil {
		return Claims{}, p.refusal("the token", err)
	}
	return claims, nil
}

// came checks the parameters a browser came back with: each once, of this sign-in, and of
// this provider (RFC 9207, section 2.4).
func (p *Provider) came(f *found, b Begun, query url.Values) error {
	for name, values := range query {
		if len(values) != 1 {
			return fmt.Errorf("%s is there twice", strconv.Quote(name))
		}
	}
	issuer := query.Get("iss")
	switch {
	case subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(b.State)) != 1:
		return errors.New("the state is another's")
	case issuer != "" && issuer != p.Issuer, issuer == "" && f.names:
		return errors.New("iss names another provider, or none")
	case query.Get("error") == "access_denied":
		return controlapi.Refuse(controlapi.CodeForbidden, words.Of("You were not signed in at %s.", p.Label))
	case query.Get("error") == "temporarily_unavailable", query.Get("error") == "server_error":
		return errAway
	case query.Get("error") != "" || query.Get("code") == "":
		return errors.New("the provider refused, and did not say access_denied")
	}
	return nil
}

// told checks the ID token (Core, section 3.1.3.7), and asks for the mail address where it
// is not in there.
func (p *Provider) claimsOf(ctx context.Context, f *found, b Begun, token *oauth2.Token) (Claims, error) {
	raw, _ := token.Extra("id_token").(string)
	if err := p.signed(ctx, f, raw); err != nil {
		return Claims{}, err
	}
	id, err := f.verifier.Verify(ctx, raw)
	if err != nil {
		return Claims{}, err
	}
	var said idToken
	if err := id.Claims(&said); err != nil {
		return Claims{}, err
	}
	if err := p.isOurs(id, said, b); err != nil {
		return Claims{}, err
	}
	out := Claims{Subject: id.Subject, Session: said.Session, Email: said.Email, Verified: bool(said.Verified)}
	if said.AuthTime > 0 {
		out.AuthTime = time.Unix(said.AuthTime, 0)
	}
	grouped, err := p.groups(id.Claims, &out)
	if err != nil {
		return Claims{}, err
	}
	if (out.Email == "" || !grouped) && f.UserInfoEndpoint() != "" {
		if err := p.askMore(ctx, f, token, &out); err != nil {
			return Claims{}, err
		}
	}
	if len(out.Email) > maxEmail {
		out.Email = ""
	}
	return out, nil
}

// idToken is what we read of one beside what go-oidc does.
type idToken struct {
	Party    string `json:"azp"`
	Session  string `json:"sid"`
	AuthTime int64  `json:"auth_time"`
	Email    string `json:"email"`
	Verified truth  `json:"email_verified"`
	Events   any    `json:"events"`
}

// isOurs refuses an ID token of another sign-in, client, purpose or time, and one of nobody.
func (p *Provider) isOurs(id *oidc.IDToken, said idToken, b Begun) error {
	switch {
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(b.Nonce)) != 1:
		return errors.New("the nonce is another's")
	case said.Party != "" && said.Party != p.ClientID, said.Party == "" && len(id.Audience) > 1:
		return errors.New("the token was made for another client")
	case said.Events != nil: // a logout token's (Back-Channel Logout 1.0, section 2.4)
		return errors.New("the token tells of something that happened")
	case id.IssuedAt.After(p.now().Add(clocksDiffer)):
		return errClock
	case id.Subject == "" || len(id.Subject) > maxSubject || len(said.Session) > maxSubject:
		return errors.New("the token says of nobody, or with too many letters")
	}
	return nil
}

// askMore asks the UserInfo endpoint for the mail address, where none was told, and the groups.
func (p *Provider) askMore(ctx context.Context, f *found, token *oauth2.Token, out *Claims) error {
	info, err := f.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return err
	}
	if info.Subject != out.Subject { // Core, section 5.3.2
		return errors.New("the address is another's")
	}
	if out.Email == "" {
		out.Email, out.Verified = info.Email, info.EmailVerified
	}
	_, err = p.groups(info.Claims, out)
	return err
}

// groups reads the claim of groups, a list or one name, and says whether it is there, or none is
// asked for.
func (p *Provider) groups(read func(any) error, out *Claims) (there bool, err error) {
	if p.Groups == "" {
		return true, nil
	}
	var all map[string]json.RawMessage
	if err := read(&all); err != nil {
		return false, err
	}
	raw, there := all[p.Groups]
	var names []string
	if one := ""; json.Unmarshal(raw, &one) == nil && one != "" {
		names = []string{one}
	} else if json.Unmarshal(raw, &names) != nil {
		return there, nil
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if len(out.Groups) < maxGroups && name != "" && len(name) <= maxGroupName {
			out.Groups = append(out.Groups, name)
		}
	}
	return there, nil
}

// signed says whether a token is signed by one of the provider's keys. The library looks
// once more, and does not tell why it refuses.
func (p *Provider) signed(ctx context.Context, f *found, raw string) error {
	_, err := f.keys.VerifySignature(ctx, raw)
	if err == nil || errors.Is(err, errAway) || strings.Count(raw, ".") != 2 {
		return err
	}
	var late interface{ Timeout() bool }
	if errors.As(err, &late) && late.Timeout() {
		return err
	}
	return fmt.Errorf("%w: %w", errKey, err)
}

// truth reads true as some write it.
type truth bool

// UnmarshalJSON implements json.Unmarshaler.
func (t *truth) UnmarshalJSON(b []byte) error {
	*t = truth(bytes.Equal(b, []byte("true")) || bytes.Equal(b, []byte(`"true"`)))
	return nil
}

var _ json.Unmarshaler = (*truth)(nil)

// Logout is what a provider tells of somebody who signed out there.
type Logout struct {
	Subject, Session string // either may be empty
	ID               string // jti
	Until            time.Time
}

// SignedOut checks a logout token (Back-Channel Logout 1.0, section 2.6), but for whether
// its ID came before. It refuses with CodeInvalid.
func (p *Provider) SignedOut(ctx context.Context, raw string) (Logout, error) {
	refused := controlapi.Refuse(controlapi.CodeInvalid, words.Plain("That is no logout token of this provider."))
	f, err := p.as(ctx)
	if err != nil {
		return Logout{}, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	token, err := f.verifier.VerifyLogout(ctx, raw)
	if err != nil {
		p.log.Info("a logout token was refused", "err", err)
		return Logout{}, refused
	}
	var said struct {
		Events map[string]map[string]any `json:"events"`
	}
	err = token.Claims(&said)
	if !mayBeLogout(raw) {
		err = errors.New("its typ is that of another token")
	}
	switch ahead := p.now().Add(clocksDiffer); {
	case err != nil || said.Events["http://schemas.openid.net/event/backchannel-logout"] == nil,
		token.IssuedAt.IsZero() || token.IssuedAt.After(ahead) || token.Expiry.After(ahead.Add(maxLogoutLife)),
		len(token.Subject) > maxSubject || len(token.SessionID) > maxSubject || len(token.TokenID) > maxSubject:
		return Logout{}, refused
	}
	return Logout{Subject: token.Subject, Session: token.SessionID, ID: token.TokenID, Until: token.Expiry}, nil
}

// mayBeLogout says whether the typ of a token lets it be a logout token (section 2.4). Providers
// leave it out or write JWT: then it is one by its event, which is in no other token of theirs
// (RFC 8725, section 3.12).
func mayBeLogout(raw string) bool {
	head, _, _ := strings.Cut(raw, ".")
	b, err := base64.RawURLEncoding.DecodeString(head)
	var h struct {
		Type string `json:"typ"`
	}
	if err != nil || json.Unmarshal(b, &h) != nil {
		return false
	}
	// RFC 7515, section 4.1.9: without regard to case, "application/" may be left out.
	switch strings.TrimPrefix(strings.ToLower(h.Type), "application/") {
	case "", "jwt", "logout+jwt":
		return true
	}
	return false
}

// maxLogoutLife bounds how long a logout token counts, and so how long its ID is kept.
const maxLogoutLife = time.Hour

package reach

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"porchlight/agent/ownersecret"
	"porchlight/control/controlapi"
)

// Of the processes that reach an app at once, each uses the one refresh token that is kept,
// which works once. Who finds it used looks for what the other one kept, this often.
const (
	lookAgain = 200 * time.Millisecond
	looks     = 25
)

// byIssuer stands between who gave a refresh token and it, where that is kept; neither has one.
const byIssuer = "#"

// SignIn has the person sign in unless they did and it still holds.
func (a *App) SignIn(ctx context.Context) error {
	_, err := a.token(ctx, "")
	if !errors.Is(err, ErrSignIn) {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	token, err := a.askPerson(ctx)
	if err != nil {
		return err
	}
	return a.took(ctx, token)
}

// SignOut ends what the person signed in for, here and at the control plane.
func (a *App) SignOut(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	kept, err := a.kept(ctx)
	if err != nil {
		return err
	}
	s, err := a.authority(ctx)
	if err == nil {
		if token, is := s.own(kept); is {
			err = s.revoke(ctx, a.client, token)
		}
	}
	for _, store := range a.cfg.Keep {
		if gone := store.Delete(ctx); gone != nil && !errors.Is(gone, ownersecret.ErrNotFound) && !errors.Is(gone, ownersecret.ErrUnavailable) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// token is an access token, another one than one that was not taken. It is ErrSignIn where
// only the person can get one.
func (a *App) token(ctx context.Context, not string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.access != "" && a.access != not && time.Until(a.expiry) > nearlyOver {
		return a.access, nil
	}
	used := ""
	for range looks {
		kept, err := a.kept(ctx)
		if err != nil {
			return "", err
		}
		if kept != used {
			token, err := a.refresh(ctx, kept)
			if err == nil {
				err = a.took(ctx, token)
			}
			switch codeOf(err) {
			case controlapi.CodeAccessDenied: // it was revoked
				return "", ErrSignIn
			case controlapi.CodeInvalidTarget:
				return "", a.noApp()
			case controlapi.CodeInvalidGrant:
				used = kept
			default:
				return a.access, err
			}
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return "", ErrSignIn
}

// codeOf is that of a refusal of the token endpoint; empty for anything else.
func codeOf(err error) string {
	if refusal, is := errors.AsType[*oauth2.RetrieveError](err); is {
		return refusal.ErrorCode
	}
	return ""
}

// refresh gets an access token, as whoever signs people in for the app by now is the one that
// gave the refresh token: no other gets that to see, however the app's address came to name
// another. What comes is to be for this very address, which may be another's by now (RFC 8707).
func (a *App) refresh(ctx context.Context, kept string) (*oauth2.Token, error) {
	s, err := a.authority(ctx)
	if err != nil {
		return nil, err
	}
	token, is := s.own(kept)
	if !is {
		return nil, ErrSignIn
	}
	return s.config("").Exchange(a.with(ctx), "", oauth2.SetAuthURLParam("grant_type", "refresh_token"),
		oauth2.SetAuthURLParam("refresh_token", token), oauth2.SetAuthURLParam("resource", a.origin))
}

// own is the refresh token in what is kept, where this server gave it.
func (s *server) own(kept string) (token string, is bool) {
	return strings.CutPrefix(kept, s.Issuer+byIssuer)
}

// took keeps what came with an access token, from a.server. a.mu is held.
func (a *App) took(ctx context.Context, token *oauth2.Token) error {
	a.access, a.expiry = token.AccessToken, token.Expiry
	ctx = context.WithoutCancel(ctx) // the one before is used up
	var err error
	for i, store := range a.cfg.Keep {
		if err = store.Set(ctx, a.server.Issuer+byIssuer+token.RefreshToken); err != nil {
			continue
		}
		for _, before := range a.cfg.Keep[i+1:] {
			_ = before.Delete(ctx) // not read any more
		}
		return nil
	}
	return fmt.Errorf("the sign-in cannot be kept: %w", err)
}

// kept is the refresh token with who gave it, or ErrSignIn.
func (a *App) kept(ctx context.Context) (string, error) {
	for _, store := range a.cfg.Keep {
		switch kept, err := store.Get(ctx); {
		case err == nil:
			return kept, nil
		case errors.Is(err, ownersecret.ErrLocked):
			return "", fmt.Errorf("unlock your keychain first, which keeps your sign-in: %w", err)
		case !errors.Is(err, ownersecret.ErrNotFound) && !errors.Is(err, ownersecret.ErrUnavailable):
			return "", err
		}
	}
	return "", ErrSignIn
}

// with has package oauth2 ask by our client.
func (a *App) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, &http.Client{
		Transport: a.cfg.Transport, Timeout: askFor, CheckRedirect: a.client.CheckRedirect,
	})
}

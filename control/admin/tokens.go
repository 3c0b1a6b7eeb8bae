package admin

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
)

// AddToken asks for a token of API.
type AddToken struct {
	Name   string               `json:"name"`
	Scopes []control.TokenScope `json:"scopes"`
	// Seconds is how long it lasts, 0 for control.TokenLife.
	Seconds int64 `json:"seconds,omitempty"`
}

// AddedToken is a token with its secret, which cannot be had again.
type AddedToken struct {
	control.AdminToken
	Token string `json:"token"`
}

func (a *Admin) addToken(w http.ResponseWriter, r *http.Request) error {
	var ask AddToken
	if err := readJSON(r, &ask); err != nil {
		return err
	}
	const most = int64(1 << 32) // seconds; more would not be a time.Duration
	token, secret, err := a.cfg.Tokens.Add(r.Context(), ask.Name, ask.Scopes, time.Duration(max(min(ask.Seconds, most), -1))*time.Second)
	if err != nil {
		return err
	}
	a.cfg.Log.Warn("a token for the administration was made", "token", token.ID, "ends", token.Ends)
	controlapi.WriteJSON(w, http.StatusOK, AddedToken{token, secret})
	return nil
}

func (a *Admin) removeToken(w http.ResponseWriter, r *http.Request) error {
	token, err := a.cfg.Tokens.Remove(r.Context(), r.PathValue("id"), control.ByCommandLine)
	if err != nil {
		return err
	}
	a.cfg.Log.Warn("a token for the administration was removed", "token", token.ID)
	controlapi.WriteJSON(w, http.StatusOK, token)
	return nil
}

// AddToken makes a token of API and returns it, this once.
func (c *Client) AddToken(ctx context.Context, ask AddToken) (AddedToken, error) {
	return asked[AddedToken](ctx, c, "POST", "/tokens", ask)
}

// RemoveToken ends a token.
func (c *Client) RemoveToken(ctx context.Context, id string) (control.AdminToken, error) {
	return asked[control.AdminToken](ctx, c, "DELETE", "/tokens/"+url.PathEscape(id), nil)
}

// Tokens are those that have not ended.
func (c *Client) Tokens(ctx context.Context) ([]control.AdminToken, error) {
	return asked[[]control.AdminToken](ctx, c, "GET", "/tokens", nil)
}

package agentapi

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// AppPassword is a password with which a program that is no browser opens one app in
// one person's name. Nothing tells the password itself again.
type AppPassword struct {
	ID        string    `json:"id"`
	AccountID string    `json:"accountId"`
	Email     string    `json:"email"` // the user name that goes with it
	App       string    `json:"app"`   // label
	AppName   string    `json:"appName"`
	Name      string    `json:"name"`               // what the person called it; empty while that is not known
	CreatedAt time.Time `json:"createdAt,omitzero"` // absent while that is not known
}

// PasswordRequest is the body of POST /owner/passwords.
type PasswordRequest struct {
	App  string `json:"app"`  // name or label
	Name string `json:"name"` // to tell it from others
}

// MadePassword answers it, and nothing shows the password again.
type MadePassword struct {
	ID       string `json:"id"`
	Password string `json:"password"`
}

// Passwords lists everybody's app passwords for this computer, newest first: GET
// /owner/passwords.
func (c *Client) Passwords(ctx context.Context) ([]AppPassword, error) {
	return call[[]AppPassword](ctx, c, http.MethodGet, "/owner/passwords", nil)
}

// MakePassword makes an app password for the owner: POST /owner/passwords.
func (c *Client) MakePassword(ctx context.Context, req PasswordRequest) (MadePassword, error) {
	return call[MadePassword](ctx, c, http.MethodPost, "/owner/passwords", req)
}

// RevokePassword ends an app password, whosever it is: POST
// /owner/passwords/{id}/revoke.
func (c *Client) RevokePassword(ctx context.Context, id string) (Closed, error) {
	return call[Closed](ctx, c, http.MethodPost, "/owner/passwords/"+url.PathEscape(id)+"/revoke", nil)
}

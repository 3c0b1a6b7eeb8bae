package controlapi

import (
	"context"
	"net/http"
	"time"
)

// Paths of app passwords, with which programs that are no browsers open one app
// in one person's name. These are the owner's: for others a password is made on
// the pages of the auth host.
const (
	PathPasswords       = "/v1/passwords"        // GET: Passwords; POST MakePassword: MadePassword
	PathPasswordsRevoke = "/v1/passwords/revoke" // POST RevokePassword

	// PathPasswordPages is where a person makes, sees and revokes their own, with
	// ParamComputer for the passwords of one computer. It asks for a fresh sign-in.
	PathPasswordPages = "/account/passwords"
)

// What holds for every app password.
const (
	// PasswordPrefix begins each; 160 random bits follow, as 32 of a-z and 2-7.
	PasswordPrefix = "plp_"

	MaxPasswordName      = 60   // characters
	MaxPasswordsEach     = 20   // of one person for one app
	MaxPasswordsComputer = 1000 // of one computer
)

// AppPassword is one that holds, as the agent checks it. It never says more than
// that this account may try this app with it: what the account may open is its
// Person's to say.
type AppPassword struct {
	ID        string `json:"id"`
	AccountID string `json:"accountId"`
	AppID     string `json:"appId"`
	// Hash is the SHA-256 of the whole password, PasswordPrefix included, in
	// base64url without padding.
	Hash string `json:"hash"`
}

// PasswordInfo is an app password as people see it.
type PasswordInfo struct {
	ID        string    `json:"id"`
	AccountID string    `json:"accountId"`
	Email     string    `json:"email"`
	AppID     string    `json:"appId"`
	Name      string    `json:"name"` // what the person called it
	CreatedAt time.Time `json:"createdAt"`
}

// Passwords answers GET PathPasswords: those of everybody for one computer, newest
// first. They end with their app, with their person's access to it, and with the
// person's removal, and do not come back with any of them.
type Passwords struct {
	Passwords []PasswordInfo `json:"passwords"`
}

// MakePassword is the body of POST PathPasswords: one for the computer's owner. An
// app that the computer has not reported and a name that will not do are refused
// with CodeInvalid, one too many with CodeForbidden, too many at a time with
// CodeTooMany and Error.RetryAfter.
type MakePassword struct {
	App  string `json:"app"` // id
	Name string `json:"name"`
}

// MadePassword answers POST PathPasswords, and nothing shows the password again.
type MadePassword struct {
	ID       string `json:"id"`
	Password string `json:"password"`
}

// RevokePassword is the body of POST PathPasswordsRevoke. One that has ended, and
// another computer's, are refused with CodeNotFound.
type RevokePassword struct {
	ID string `json:"id"`
}

// Passwords lists the app passwords of everybody for this computer.
func (c *Client) Passwords(ctx context.Context) ([]PasswordInfo, error) {
	out, err := ask[Passwords](ctx, c, http.MethodGet, PathPasswords, nil)
	return out.Passwords, err
}

// MakePassword makes an app password for the owner of this computer.
func (c *Client) MakePassword(ctx context.Context, m MakePassword) (MadePassword, error) {
	return ask[MadePassword](ctx, c, http.MethodPost, PathPasswords, m)
}

// RevokePassword ends an app password for this computer, whosever it is. The next
// snapshot is without it.
func (c *Client) RevokePassword(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodPost, PathPasswordsRevoke, RevokePassword{ID: id}, nil)
}

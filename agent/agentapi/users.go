package agentapi

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// NoticeUser is the Kind of a Notice about another user of this computer whose
// program wants to register; see LocalUser.
const NoticeUser = "user"

// LocalUser is another user of this computer than the owner's. Their programs may
// ask for addresses; they register, and by that see and change who may come in,
// once the owner allowed the user.
type LocalUser struct {
	ID       string    `json:"id"`   // the system's own: a uid, or a SID on Windows
	Name     string    `json:"name"` // login name, or ID for one without
	Standing string    `json:"standing"`
	At       time.Time `json:"at"` // since when
}

// Values of LocalUser.Standing.
const (
	UserAsks    = "asks" // a program of theirs tried, and the owner has not answered
	UserAllowed = "allowed"
	UserDenied  = "denied"
)

// Users lists the other users of this computer that asked or were answered: GET
// /owner/users.
func (c *Client) Users(ctx context.Context) ([]LocalUser, error) {
	return call[[]LocalUser](ctx, c, http.MethodGet, "/owner/users", nil)
}

// AllowUser lets a user's programs register: POST /owner/users/{id}/allow.
func (c *Client) AllowUser(ctx context.Context, id string) (LocalUser, error) {
	return call[LocalUser](ctx, c, http.MethodPost, userPath(id)+"/allow", nil)
}

// DenyUser keeps them out, ends the registrations they have, and asks no more:
// POST /owner/users/{id}/deny.
func (c *Client) DenyUser(ctx context.Context, id string) (LocalUser, error) {
	return call[LocalUser](ctx, c, http.MethodPost, userPath(id)+"/deny", nil)
}

// ForgetUser takes the answer back and ends the registrations they have; the next
// attempt asks again. DELETE /owner/users/{id}.
func (c *Client) ForgetUser(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, userPath(id), nil)
}

func userPath(id string) string { return "/owner/users/" + url.PathEscape(id) }

package agentapi

import (
	"cmp"
	"context"
	"net/http"
	"strings"
)

// MaxVisitors is how many visitors are listed at once.
const MaxVisitors = 500

// Visitor is somebody with something open now: a person, by their browsers and app
// passwords, or, where GrantID is set, a remote client that opens apps in their name. The
// owner's own browsers are no visitors; each app password and device of theirs is one.
type Visitor struct {
	AccountID   string   `json:"accountId"`
	Email       string   `json:"email"`
	You         bool     `json:"you,omitempty"` // in the owner's name
	GrantID     string   `json:"grantId,omitempty"`
	PasswordID  string   `json:"passwordId,omitempty"` // of an app password or a device of the owner's
	ClientName  string   `json:"clientName,omitempty"` // of the client, or what password or device is called
	Apps        []string `json:"apps"`                 // labels
	Connections int      `json:"connections"`          // open ones
}

// Called is what the owner knows a visitor by. A client calls itself what it likes, and is
// not taken for a person by that.
func (v Visitor) Called() string {
	if strings.Contains(v.ClientName, "@") {
		return v.ClientName + " (" + v.Email + ")"
	}
	return cmp.Or(v.ClientName, v.Email)
}

// DisconnectRequest is the body of POST /owner/visitors/disconnect: a person's browsers
// and app passwords, or one remote client of theirs or app password of the owner's.
type DisconnectRequest struct {
	AccountID  string `json:"accountId"`
	GrantID    string `json:"grantId,omitempty"`
	PasswordID string `json:"passwordId,omitempty"`
}

// Visitors lists who has something open now: GET /owner/visitors.
func (c *Client) Visitors(ctx context.Context) ([]Visitor, error) {
	return call[[]Visitor](ctx, c, http.MethodGet, "/owner/visitors", nil)
}

// DisconnectVisitor closes what one visitor has open: POST /owner/visitors/disconnect.
// Nobody's access changes.
func (c *Client) DisconnectVisitor(ctx context.Context, d DisconnectRequest) (Closed, error) {
	return call[Closed](ctx, c, http.MethodPost, "/owner/visitors/disconnect", d)
}

package agentapi

import (
	"context"
	"net/http"
)

// MaxVisitors is how many visitors are listed at once.
const MaxVisitors = 500

// Visitor is somebody with something open now: a person, by their browsers and app
// passwords, or, where GrantID is set, a remote client that opens apps in their name.
type Visitor struct {
	AccountID   string   `json:"accountId"`
	Email       string   `json:"email"`
	GrantID     string   `json:"grantId,omitempty"`
	ClientName  string   `json:"clientName,omitempty"`
	Apps        []string `json:"apps"`        // labels
	Connections int      `json:"connections"` // open ones
}

// DisconnectRequest is the body of POST /owner/visitors/disconnect: a person's browsers
// and app passwords, or with a GrantID one remote client of theirs.
type DisconnectRequest struct {
	AccountID string `json:"accountId"`
	GrantID   string `json:"grantId,omitempty"`
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

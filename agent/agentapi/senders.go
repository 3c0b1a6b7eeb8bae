package agentapi

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Kinds of Sender: how it signs what it sends.
const (
	SenderStandard = "standard-webhooks" // standardwebhooks.com, svix
	SenderGitHub   = "github"
	SenderStripe   = "stripe"
	SenderSlack    = "slack"
	SenderHMAC     = "hmac-sha256" // over the body, in hexadecimal or base64, in Sender.Header
)

// SenderKinds lists them.
func SenderKinds() []string {
	return []string{SenderStandard, SenderGitHub, SenderStripe, SenderSlack, SenderHMAC}
}

// Sender is a program of others that the owner named for one app: what it signs and posts
// to one path of it comes in without anybody signing in. Nothing tells its secrets again.
type Sender struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	App       string    `json:"app"` // label
	AppName   string    `json:"appName"`
	URL       string    `json:"url"`  // where it posts to; empty while there is no address
	Path      string    `json:"path"` // the same without the app's address
	Kind      string    `json:"kind"`
	Header    string    `json:"header,omitempty"` // of SenderHMAC: where the signature is
	Secrets   int       `json:"secrets"`          // how many hold: 1, or 2 while it is changed
	Until     time.Time `json:"until,omitzero"`   // when it ends; absent for never
	CreatedAt time.Time `json:"createdAt"`
}

// SenderRequest is the body of POST /owner/senders.
type SenderRequest struct {
	App    string `json:"app"`  // name or label
	Name   string `json:"name"` // what the owner is told it by
	Path   string `json:"path"` // exactly, with a query where it has one
	Kind   string `json:"kind"`
	Header string `json:"header,omitempty"` // of SenderHMAC
	Secret string `json:"secret"`
	Until  string `json:"until,omitempty"` // see CheckedUntil
}

// MadeSender answers it.
type MadeSender struct {
	ID  string `json:"id"`
	URL string `json:"url"` // where it is to post to
}

// SenderSecret is the body of POST /owner/senders/{id}/secret: a new secret, beside which
// the newest of before holds unless Alone. Alone without a secret ends the older of two.
type SenderSecret struct {
	Secret string `json:"secret,omitempty"`
	Alone  bool   `json:"alone,omitempty"`
}

// Senders lists those of all apps, by app and name: GET /owner/senders.
func (c *Client) Senders(ctx context.Context) ([]Sender, error) {
	return call[[]Sender](ctx, c, http.MethodGet, "/owner/senders", nil)
}

// AddSender names a sender: POST /owner/senders.
func (c *Client) AddSender(ctx context.Context, req SenderRequest) (MadeSender, error) {
	return call[MadeSender](ctx, c, http.MethodPost, "/owner/senders", req)
}

// ChangeSenderSecret gives a sender another secret: POST /owner/senders/{id}/secret.
func (c *Client) ChangeSenderSecret(ctx context.Context, id string, req SenderSecret) (Sender, error) {
	return call[Sender](ctx, c, http.MethodPost, "/owner/senders/"+url.PathEscape(id)+"/secret", req)
}

// RevokeSender ends a sender, and what it has open: POST /owner/senders/{id}/revoke.
func (c *Client) RevokeSender(ctx context.Context, id string) (Closed, error) {
	return call[Closed](ctx, c, http.MethodPost, "/owner/senders/"+url.PathEscape(id)+"/revoke", nil)
}

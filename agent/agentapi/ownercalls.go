package agentapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"porchlight/internal/words"
)

// Pause closes a live app to everybody and keeps its approval and its people;
// Resume opens it again.
func (c *Client) Pause(ctx context.Context, name string) (Closed, error) {
	return onApp[Closed](ctx, c, name, "pause", nil)
}

// Resume takes a Pause back.
func (c *Client) Resume(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodPost, appPath(name, "resume"), nil)
}

// GoDark closes everything at once and keeps every approval: POST /owner/dark.
func (c *Client) GoDark(ctx context.Context) (Closed, error) {
	return call[Closed](ctx, c, http.MethodPost, "/owner/dark", nil)
}

// LightUp takes a GoDark back: DELETE /owner/dark.
func (c *Client) LightUp(ctx context.Context) error {
	return c.do(ctx, http.MethodDelete, "/owner/dark", nil)
}

// RotateKey is the body of POST /owner/identity-key/rotate.
type RotateKey struct {
	Now bool `json:"now"` // sign with it at once, and end the former
}

// IdentityKey returns the keys that verify X-Service-Token, a JWK Set (RFC 7517, section 5).
func (c *Client) IdentityKey(ctx context.Context) (json.RawMessage, error) {
	return call[json.RawMessage](ctx, c, http.MethodGet, "/owner/identity-key", nil)
}

// RotateIdentityKey makes a new one, and returns what there is then.
func (c *Client) RotateIdentityKey(ctx context.Context, how RotateKey) (json.RawMessage, error) {
	return call[json.RawMessage](ctx, c, http.MethodPost, "/owner/identity-key/rotate", how)
}

// ConnectRequest is the body of POST /owner/connect.
type ConnectRequest struct {
	URL  string `json:"url"`            // of the control plane
	Name string `json:"name,omitempty"` // short name wished for
	// CA holds the certificates (PEM) that the control plane's must lead to,
	// where it is not one the system trusts.
	CA string `json:"ca,omitempty"`
	// ACMEDirectory is where this computer's own certificates are ordered. When
	// empty it is Let's Encrypt, or nowhere with CA set: this computer then makes
	// its certificates itself, and every visitor has to trust it first.
	ACMEDirectory string `json:"acmeDirectory,omitempty"`
}

// Connecting is a connection to a control plane that waits to be confirmed in a
// browser (RFC 8628). State is ConnectWaiting until it ends.
type Connecting struct {
	State   string `json:"state"`
	AuthURL string `json:"authUrl"`
	// UserCode is compared in the browser; VerificationURL is where, and
	// VerificationURLComplete has the code filled in.
	UserCode                string    `json:"userCode"`
	VerificationURL         string    `json:"verificationUrl"`
	VerificationURLComplete string    `json:"verificationUrlComplete"`
	ExpiresAt               time.Time `json:"expiresAt"`
	// Problem is a sentence about why it ended without a connection.
	Problem string `json:"problem,omitempty"`
	// Words is Problem with its arguments apart, to be said in another language.
	Words words.Text `json:"problemWords,omitempty"`
	// Note says what becomes of approvals and people.
	Note string `json:"note,omitempty"`
}

// States of Connecting.
const (
	ConnectWaiting = "waiting" // for the browser
	ConnectDone    = "done"    // the agent restarts under its new address
	ConnectFailed  = "failed"  // see Problem
)

// Connect begins to connect this computer to a control plane. Follow
// OwnerState.Connecting, and Account afterwards.
func (c *Client) Connect(ctx context.Context, req ConnectRequest) (Connecting, error) {
	return call[Connecting](ctx, c, http.MethodPost, "/owner/connect", req)
}

// ServerLook is the body of POST /owner/connect/look: an address and an authority as
// ConnectRequest has them, or no address.
type ServerLook struct {
	URL string `json:"url,omitempty"`
	CA  string `json:"ca,omitempty"`
}

// Server is a control plane to connect to: the one that was looked at, which answers, or
// with no address the last that this computer was connected to, all empty before any.
type Server struct {
	URL string `json:"url"`
	// Name is what this computer was called there; EndedAt is when that was over.
	Name    string    `json:"name"`
	EndedAt time.Time `json:"endedAt,omitzero"`
}

// LookServer looks whether there is a control plane at an address, or says which was the
// last: POST /owner/connect/look.
func (c *Client) LookServer(ctx context.Context, look ServerLook) (Server, error) {
	return call[Server](ctx, c, http.MethodPost, "/owner/connect/look", look)
}

// CancelConnect gives up a Connect that waits: DELETE /owner/connect.
func (c *Client) CancelConnect(ctx context.Context) error {
	return c.do(ctx, http.MethodDelete, "/owner/connect", nil)
}

// Disconnect takes this computer off its control plane and returns it to this
// computer alone: POST /owner/disconnect. Approvals stay.
func (c *Client) Disconnect(ctx context.Context) error {
	return c.do(ctx, http.MethodPost, "/owner/disconnect", nil)
}

func formatID(id uint64) string { return strconv.FormatUint(id, 10) }

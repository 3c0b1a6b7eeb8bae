package agentapi

import (
	"context"
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
	_, err := onApp[Done](ctx, c, name, "resume", nil)
	return err
}

// GoDark closes everything at once and keeps every approval: POST /owner/dark.
func (c *Client) GoDark(ctx context.Context) (Closed, error) {
	return call[Closed](ctx, c, http.MethodPost, "/owner/dark", nil)
}

// LightUp takes a GoDark back: DELETE /owner/dark.
func (c *Client) LightUp(ctx context.Context) error {
	_, err := call[Done](ctx, c, http.MethodDelete, "/owner/dark", nil)
	return err
}

// Settings of the owner that the agent keeps.
type Settings struct {
	// FailStaticHours is how long people keep their access while the control
	// plane is away, 0 to 24.
	FailStaticHours int `json:"failStaticHours"`
	// AskAgain has a change of an app's port wait for the owner again.
	AskAgain bool `json:"askAgain"`
	// TrustEverybody has programs of every user of this computer count as the
	// owner's own.
	TrustEverybody bool `json:"trustEverybody"`
	// Probe has the agent ask approved apps for their first page, to tell how they
	// do. It is on until the owner says otherwise.
	Probe bool `json:"probe"`
	// Requests has the last requests of visitors kept in memory, for the owner to
	// see. It is on until the owner says otherwise; off forgets them.
	Requests bool `json:"requests"`
	// Titles has the agent ask programs of the owner for their titles and icons while
	// the owner chooses what to share. It is on until the owner says otherwise.
	Titles bool `json:"titles"`
	// StrangersKnock lets people who are unknown to this computer ask to be let in.
	// It is off until the owner says otherwise.
	StrangersKnock bool `json:"strangersKnock"`
	// DisplayName is what the owner calls themselves to people they invite, beside
	// their mail address and never in place of it; empty for the address alone. At
	// most 60 characters, without @ and dots.
	DisplayName string `json:"displayName"`
	// Language is the tag of the one the owner is told things in, and whoever they
	// invite; empty for that of the desktop.
	Language string `json:"language"`
	// UpdateAddress is asked once a day whether there is a newer version, and UpdateKey is
	// the public key that signs there, in base64. Both are empty until the owner names
	// them, and it is then the address that the operator of their server names, if any;
	// NoAddress is the owner's wish for none.
	UpdateAddress string `json:"updateAddress"`
	UpdateKey     string `json:"updateKey"`
	// Quiet holds the names of the Kinds that raise no notification.
	Quiet []string `json:"quiet"`
}

// Settings is GET /owner/settings.
func (c *Client) Settings(ctx context.Context) (Settings, error) {
	return call[Settings](ctx, c, http.MethodGet, "/owner/settings", nil)
}

// SetSettings replaces them: PUT /owner/settings.
func (c *Client) SetSettings(ctx context.Context, s Settings) (Settings, error) {
	if s.Quiet == nil {
		s.Quiet = []string{}
	}
	return call[Settings](ctx, c, http.MethodPut, "/owner/settings", s)
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

// CancelConnect gives up a Connect that waits: DELETE /owner/connect.
func (c *Client) CancelConnect(ctx context.Context) error {
	_, err := call[Done](ctx, c, http.MethodDelete, "/owner/connect", nil)
	return err
}

// Disconnect takes this computer off its control plane and returns it to this
// computer alone: POST /owner/disconnect. Approvals stay.
func (c *Client) Disconnect(ctx context.Context) error {
	_, err := call[Done](ctx, c, http.MethodPost, "/owner/disconnect", nil)
	return err
}

func formatID(id uint64) string { return strconv.FormatUint(id, 10) }

package controlapi

import (
	"context"
	"net/http"
)

// Paths of enrolling a computer: a device flow in the shape of RFC 8628. The
// computer asks with PathEnrol and polls PathEnrolToken; its owner confirms the
// short code on PathDevice in a browser.
const (
	PathEnrol      = "/v1/enrol"       // POST EnrolRequest, no credential: EnrolStarted
	PathEnrolToken = "/v1/enrol/token" // POST EnrolPoll, no credential: Enrolled
	PathComputer   = "/v1/computer"    // DELETE: the credential ends at once, the short name is kept for the account
	PathDevice     = "/device"         // pages
)

// Codes of Error while a computer polls (RFC 8628, section 3.5).
const (
	CodeAuthorizationPending = "authorization_pending" // not confirmed yet
	CodeSlowDown             = "slow_down"             // poll five seconds less often
	CodeExpiredToken         = "expired_token"         // ten minutes are over, or it was answered already
)

// EnrolRequest is the body of POST PathEnrol.
type EnrolRequest struct {
	Machine  string `json:"machine"`        // host name, shown on the confirming page
	Platform string `json:"platform"`       // GOOS
	Name     string `json:"name,omitempty"` // short name wished for, a suggestion only
	// Apps are names of apps approved on this computer: none of them may
	// become its short name.
	Apps []string `json:"apps,omitempty"`
}

// EnrolStarted answers POST PathEnrol (RFC 8628, section 3.2).
type EnrolStarted struct {
	DeviceCode              string `json:"device_code"`
	UserCode                string `json:"user_code"` // ABCD-EFGH
	VerificationURI         string `json:"verification_uri"`
	VerificationURIComplete string `json:"verification_uri_complete"`
	ExpiresIn               int    `json:"expires_in"` // seconds
	Interval                int    `json:"interval"`   // seconds between polls
}

// EnrolPoll is the body of POST PathEnrolToken.
type EnrolPoll struct {
	DeviceCode string `json:"deviceCode"`
}

// Enrolled answers a poll after the confirmation, once.
type Enrolled struct {
	Credential string   `json:"credential"` // device credential
	AccountID  string   `json:"accountId"`
	Email      string   `json:"email"`
	Computer   Computer `json:"computer"`
}

// Enrol begins to enrol this computer. It needs no credential.
func (c *Client) Enrol(ctx context.Context, r EnrolRequest) (EnrolStarted, error) {
	return unauthenticated[EnrolStarted](ctx, c, PathEnrol, r)
}

// PollEnrol asks whether an enrolment was confirmed: CodeAuthorizationPending
// until it is, CodeAccessDenied or CodeExpiredToken when it never will be.
func (c *Client) PollEnrol(ctx context.Context, r EnrolPoll) (Enrolled, error) {
	return unauthenticated[Enrolled](ctx, c, PathEnrolToken, r)
}

// EndCredential ends this computer's credential. Its short name stays the account's.
func (c *Client) EndCredential(ctx context.Context) error {
	return c.call(ctx, http.MethodDelete, PathComputer, nil, nil)
}

func unauthenticated[Answer any](ctx context.Context, c *Client, path string, body any) (Answer, error) {
	var out Answer
	req, err := c.request(ctx, http.MethodPost, path, body)
	if err != nil {
		return out, err
	}
	req.Header.Del("Authorization")
	err = c.do(req, &out)
	return out, err
}

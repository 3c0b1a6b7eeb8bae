package agentapi

import (
	"context"
	"net/http"
	"net/url"
)

// Publish asks for an address (POST /publish). A Publication that is pending
// waits for the owner; ask with Publication until it is live.
func (c *Client) Publish(ctx context.Context, req PublishRequest) (Publication, error) {
	return call[Publication](ctx, c, http.MethodPost, "/publish", req)
}

// PublishTCP is the body of POST /owner/apps/{name}/tcp, which is Publish of an app that
// programs reach over TCP.
type PublishTCP struct {
	Label     string `json:"label"`
	LocalPort int    `json:"localPort"`
}

// PublishTCP asks for an address for an app that is no website.
func (c *Client) PublishTCP(ctx context.Context, name string, req PublishTCP) (Publication, error) {
	return onApp[Publication](ctx, c, name, "tcp", req)
}

// Publication looks at one app (GET /publish/{name}).
func (c *Client) Publication(ctx context.Context, name string) (Publication, error) {
	return call[Publication](ctx, c, http.MethodGet, "/publish/"+url.PathEscape(name), nil)
}

// Unpublish takes an app off its address and keeps its approval
// (DELETE /publish/{name}).
func (c *Client) Unpublish(ctx context.Context, name string) (Publication, error) {
	return call[Publication](ctx, c, http.MethodDelete, "/publish/"+url.PathEscape(name), nil)
}

// Status is GET /status.
func (c *Client) Status(ctx context.Context) (StatusSummary, error) {
	return call[StatusSummary](ctx, c, http.MethodGet, "/status", nil)
}

// EngineInfo is GET /engine/info.
func (c *Client) EngineInfo(ctx context.Context) (EngineInfo, error) {
	return call[EngineInfo](ctx, c, http.MethodGet, "/engine/info", nil)
}

// State is GET /owner/state. This and everything below is the owner tier's.
func (c *Client) State(ctx context.Context) (OwnerState, error) {
	return call[OwnerState](ctx, c, http.MethodGet, "/owner/state", nil)
}

// Account is GET /owner/account.
func (c *Client) Account(ctx context.Context) (Account, error) {
	return call[Account](ctx, c, http.MethodGet, "/owner/account", nil)
}

// Outbox lists the mails kept on this computer, newest first.
func (c *Client) Outbox(ctx context.Context) ([]Mail, error) {
	return call[[]Mail](ctx, c, http.MethodGet, "/owner/outbox", nil)
}

// Approve gives an app that asked its address, whatever it asks by now.
func (c *Client) Approve(ctx context.Context, name string) (Approved, error) {
	return onApp[Approved](ctx, c, name, "approve", nil)
}

// ApproveSeen is Approve for an owner who looked at the request: CodeConflict when it is
// not what was seen any more. With how.Alone nobody else who could open the app before
// gets in between; with how.Until it also sets the end of one that is approved already.
func (c *Client) ApproveSeen(ctx context.Context, name string, how Approval) (Approved, error) {
	return onApp[Approved](ctx, c, name, "approve", how)
}

// Deny refuses an app that asked.
func (c *Client) Deny(ctx context.Context, name string) (Denied, error) {
	return onApp[Denied](ctx, c, name, "deny", nil)
}

// Unmute has the owner hear again of an app that was denied more than once.
func (c *Client) Unmute(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodPost, appPath(name, "unmute"), nil)
}

// Revoke takes an app off its address and forgets its approval and who may
// open it.
func (c *Client) Revoke(ctx context.Context, name string) (Closed, error) {
	return onApp[Closed](ctx, c, name, "revoke", nil)
}

// Open makes a link that opens an app once, signed in as the owner.
func (c *Client) Open(ctx context.Context, name string) (OpenLink, error) {
	return onApp[OpenLink](ctx, c, name, "open", nil)
}

// OpenLauncher makes a link that opens the page with the owner's apps once,
// signed in as the owner.
func (c *Client) OpenLauncher(ctx context.Context) (OpenLink, error) {
	return call[OpenLink](ctx, c, http.MethodPost, "/owner/open", nil)
}

// RecoverAccount makes a link that signs the owner in at the control plane, once, without
// mail or passkey: POST /owner/account/recover.
func (c *Client) RecoverAccount(ctx context.Context) (OpenLink, error) {
	return call[OpenLink](ctx, c, http.MethodPost, "/owner/account/recover", nil)
}

// Done answers what has nothing else to say.
type Done struct {
	OK bool `json:"ok"`
}

// Denied answers a denial. A name that is muted asks unheard until it is unmuted; any
// other, for ten minutes.
type Denied struct {
	OK    bool `json:"ok"`
	Muted bool `json:"muted,omitempty"`
}

func onApp[Answer any](ctx context.Context, c *Client, name, verb string, body any) (Answer, error) {
	return call[Answer](ctx, c, http.MethodPost, appPath(name, verb), body)
}

func appPath(name, verb string) string { return "/owner/apps/" + url.PathEscape(name) + "/" + verb }

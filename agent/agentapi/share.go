package agentapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// PortSeen is what there is to see of a local port before an app is put on it:
// GET /owner/ports/{port}. Nothing is sent to the port for it.
type PortSeen struct {
	LocalPort int `json:"localPort"`
	// Listening is true when somebody listens; Listener is who, as far as the system
	// tells.
	Listening bool     `json:"listening"`
	Listener  Listener `json:"listener"`
	// Own is true when that is a program of the owner, or nobody.
	Own bool `json:"own"`
	MeantFor
	InNetwork
}

// Share is the body of POST /owner/apps/{name}/share: the owner puts a port at an
// address, as they have just seen it, for as long as a program of theirs keeps it.
type Share struct {
	Seen
	// Listening refuses it with CodeConflict where nobody listens any more: the owner
	// was shown somebody.
	Listening bool `json:"listening,omitempty"`
	// Others lets it be a program of another user, or one whose user cannot be seen.
	Others bool `json:"others,omitempty"`
	// Keep makes it an approval like any other: there is nothing to take back.
	Keep bool `json:"keep,omitempty"`
	// Menu is the agent's own finding: it is the menu bar that shares, or its window.
	Menu bool `json:"-"`
}

// Shared is of an app that was put at its address by a Share.
type Shared struct {
	At time.Time `json:"at"`
	// PID is the process that shares it, 0 where the system does not tell. It may
	// have ended without a word.
	PID int `json:"pid,omitempty"`
	// Anew is true of an app that was not there before.
	Anew bool `json:"anew"`
}

// Port looks at a local port. A new app is named after the folder, where that is not
// empty and gives a name, and else after the program.
func (c *Client) Port(ctx context.Context, port int, folder string) (PortSeen, error) {
	return call[PortSeen](ctx, c, http.MethodGet, "/owner/ports/"+strconv.Itoa(port)+"?"+url.Values{"folder": {folder}}.Encode(), nil)
}

// Share puts a port at an address.
func (c *Client) Share(ctx context.Context, name string, s Share) (Publication, error) {
	return onApp[Publication](ctx, c, name, "share", s)
}

// Unshare takes a Share back: an app that was not there before is revoked, any other
// is off its address and else as it was before. DELETE /owner/apps/{name}/share.
func (c *Client) Unshare(ctx context.Context, name string) (Closed, error) {
	return call[Closed](ctx, c, http.MethodDelete, appPath(name, "share"), nil)
}

package agentapi

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"time"
)

// Roles and states of a Person, as on the wire.
const (
	RoleOwner = "owner"

	PersonActive  = "active"  // accepted
	PersonPending = "pending" // invited
	PersonRemoved = "revoked" // removed; the row stays
)

// Person is a member of the computer (docs/interface.md, People). Apps are
// labels; the owner's are all labels there are.
type Person struct {
	Email     string   `json:"email"`
	AccountID string   `json:"accountId"`
	Role      string   `json:"role"`
	Status    string   `json:"status"`
	Apps      []string `json:"apps"`
	// Until says when some of Apps end, by label; the others do not. Ended says of
	// apps that have ended when they did, for 30 days unless they are given again
	// before. Both are for the owner: programs are told neither.
	Until map[string]time.Time `json:"until,omitempty"`
	Ended map[string]time.Time `json:"ended,omitempty"`
}

// UntilNever is an Until without an end, and UntilToday one at the end of the day.
const (
	UntilNever = "never"
	UntilToday = "today"
)

// People answers GET /people and GET /owner/people.
type People struct {
	Name          string   `json:"name"`
	Members       []Person `json:"members"`
	PublishedApps []string `json:"publishedApps"` // labels an invitation may hand over
}

// InviteRequest is the body of POST /people/invite and /owner/people/invite.
type InviteRequest struct {
	Email string   `json:"email"`
	Apps  []string `json:"apps"` // labels
	// Until is when the apps end for them, as CheckedUntil takes it; empty keeps the end
	// that each has already. From a program it is ignored.
	Until string `json:"until,omitempty"`
}

// Invitation answers an invitation (M4).
type Invitation struct {
	Email  string `json:"email"`
	Status string `json:"status"` // pending, also for somebody who is active already
	URL    string `json:"url"`    // of the first app named
}

// AccessRequest is the body of POST /people/grant and /owner/people/grant.
type AccessRequest struct {
	AccountID string `json:"accountId"`
	App       string `json:"app"` // label
	Granted   bool   `json:"granted"`
	// Until is what it is in InviteRequest. Giving an app that they have already
	// prolongs it, or ends it sooner.
	Until string `json:"until,omitempty"`
	// HoldSeconds keeps a withdrawal of the owner's from the control plane for
	// so long, at most MaxHold: see Client.UndoHeld. Elsewhere it is ignored.
	HoldSeconds int `json:"holdSeconds,omitempty"`
}

// RemoveRequest is the body of POST /people/revoke and /owner/people/revoke.
type RemoveRequest struct {
	AccountID string `json:"accountId"`
	// HoldSeconds is what it is in AccessRequest.
	HoldSeconds int `json:"holdSeconds,omitempty"`
}

// MaxHold is how long a change can be held at most.
const MaxHold = time.Minute

// HeldChange names what the owner took away from somebody and may take back: one
// app by its label, or with an empty App the whole computer.
type HeldChange struct {
	AccountID string `json:"accountId"`
	App       string `json:"app,omitempty"`
}

// PersonChanged answers a change of access and a removal. Closed and Milliseconds say
// what taking access away closed, and how soon after the request.
type PersonChanged struct {
	OK           bool   `json:"ok"`
	Person       Person `json:"person"`
	Closed       int    `json:"closed"`
	Milliseconds int    `json:"milliseconds"`
	// HeldUntil is until when it can be undone with nothing lost; nil when the
	// control plane has been told, or is told as soon as it can be.
	HeldUntil *time.Time `json:"heldUntil,omitempty"`
}

// People lists who may reach the computer: as the owner on the owner's socket,
// by the capability of Register otherwise. So do Invite, SetAccess and Remove.
func (c *Client) People(ctx context.Context) (People, error) {
	return call[People](ctx, c, http.MethodGet, c.peoplePath(""), nil)
}

// Invite sends an invitation that names apps by label.
func (c *Client) Invite(ctx context.Context, req InviteRequest) (Invitation, error) {
	return call[Invitation](ctx, c, http.MethodPost, c.peoplePath("/invite"), req)
}

// SetAccess gives one app to one person, or withdraws it.
func (c *Client) SetAccess(ctx context.Context, req AccessRequest) (PersonChanged, error) {
	return call[PersonChanged](ctx, c, http.MethodPost, c.peoplePath("/grant"), req)
}

// Remove ends a person's access to the whole computer. Their row stays, as removed.
func (c *Client) Remove(ctx context.Context, accountID string) (PersonChanged, error) {
	return c.RemoveHeld(ctx, RemoveRequest{AccountID: accountID})
}

// RemoveHeld is Remove that may be held for a moment: access is closed on this
// computer when it returns, and the control plane is told when the moment is
// over. UndoHeld before that leaves everything as it was.
func (c *Client) RemoveHeld(ctx context.Context, req RemoveRequest) (PersonChanged, error) {
	return call[PersonChanged](ctx, c, http.MethodPost, c.peoplePath("/revoke"), req)
}

// UndoHeld takes a removal, or the withdrawal of an app, back while it is held:
// role, apps and sessions are as before, and nobody is mailed. CodeConflict when
// it is not held any more. POST /owner/people/undo.
func (c *Client) UndoHeld(ctx context.Context, h HeldChange) (PersonChanged, error) {
	return call[PersonChanged](ctx, c, http.MethodPost, "/owner/people/undo", h)
}

// SettleHeld carries out what is held, now; with an empty AccountID all of it.
// What is not held is no error. POST /owner/people/settle.
func (c *Client) SettleHeld(ctx context.Context, h HeldChange) error {
	return c.do(ctx, http.MethodPost, "/owner/people/settle", h)
}

func (c *Client) peoplePath(rest string) string {
	if c.secret != "" {
		return "/owner/people" + rest
	}
	return "/people" + rest
}

// Grant is a remote client that somebody allowed to open apps in their name.
type Grant struct {
	ID         string    `json:"id"`
	ClientID   string    `json:"clientId"`
	ClientName string    `json:"clientName"`
	Email      string    `json:"email"`
	CreatedAt  time.Time `json:"createdAt"`
	LastUsedAt time.Time `json:"lastUsedAt"`
	// Apps are the labels of the apps that it opens; nil for all that its person may open,
	// later ones too.
	Apps []string `json:"apps,omitzero"`
	// ClientHost is the host that answers for the client, where its id is an https URL;
	// empty for one that the operator registered. ClientName is then what it claims.
	ClientHost string `json:"clientHost,omitempty"`
	// CallsToday counts what it asked of the apps since midnight on this computer, and
	// LastCall is when it did last; zero where it never has.
	CallsToday int       `json:"callsToday"`
	LastCall   time.Time `json:"lastCall,omitzero"`
}

// Called is what people know the client by: its host, where its name is only claimed.
func (g Grant) Called() string { return cmp.Or(g.ClientHost, g.ClientName) }

// Grants lists the grants for this computer, newest first: GET
// /owner/grants.
func (c *Client) Grants(ctx context.Context) ([]Grant, error) {
	return call[[]Grant](ctx, c, http.MethodGet, "/owner/grants", nil)
}

// RevokeGrant ends a grant: POST /owner/grants/{id}/revoke.
func (c *Client) RevokeGrant(ctx context.Context, id string) (Closed, error) {
	return call[Closed](ctx, c, http.MethodPost, "/owner/grants/"+url.PathEscape(id)+"/revoke", nil)
}

// UndoNotice takes back what the notice is about, where it can be: POST
// /owner/notices/{id}/undo.
func (c *Client) UndoNotice(ctx context.Context, id uint64) error {
	return c.do(ctx, http.MethodPost, "/owner/notices/"+formatID(id)+"/undo", nil)
}

// SeeNotices notes that the owner has looked at the notices up to id, and let be
// what they did not undo: POST /owner/notices/{id}/seen.
func (c *Client) SeeNotices(ctx context.Context, id uint64) error {
	return c.do(ctx, http.MethodPost, "/owner/notices/"+formatID(id)+"/seen", nil)
}

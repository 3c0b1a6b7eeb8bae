package agentapi

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Group is people that the owner named together, and the apps that it opens to them
// beside what each was given.
type Group struct {
	ID   string   `json:"id"`
	Name string   `json:"name"`
	Apps []string `json:"apps"` // labels
	// Until says when some of Apps end, by label, and Ended when apps ended that are none of
	// Apps any more; both for all of the group.
	Until   map[string]time.Time `json:"until,omitempty"`
	Ended   map[string]time.Time `json:"ended,omitempty"`
	Members []GroupMember        `json:"members"` // by address; who was removed is none
	// From is the group of a provider that fills it, as PROVIDER/GROUP; empty for none.
	From string `json:"from,omitempty"`
}

// GroupMember is a person of a group. What the group opens is open to them once they are
// active, unless it was withdrawn from them.
type GroupMember struct {
	AccountID string `json:"accountId"`
	Email     string `json:"email"`
	Status    string `json:"status"`
}

// GroupChanged answers a change of a group, as it is then. Closed and Milliseconds are as in
// PersonChanged. Until is of an app that was taken away: when it would have ended, if it would.
type GroupChanged struct {
	OK           bool  `json:"ok"`
	Group        Group `json:"group"`
	Closed       int   `json:"closed"`
	Milliseconds int   `json:"milliseconds"`

	Until *time.Time `json:"until,omitempty"`
}

// GroupNamed is the body of POST /owner/groups.
type GroupNamed struct {
	Name string `json:"name"`
}

// FillRequest is the body of POST /owner/groups/{id}/fill.
type FillRequest struct {
	From string `json:"from"` // as in Group
}

// MemberRequest is the body of POST /owner/groups/{id}/join and leave.
type MemberRequest struct {
	AccountID string `json:"accountId"`
}

// GroupAppRequest is the body of POST /owner/groups/{id}/grant and withdraw.
type GroupAppRequest struct {
	App string `json:"app"` // label
	// Until is what it is in AccessRequest; to withdraw it is of no account.
	Until string `json:"until,omitempty"`
}

// Groups lists the owner's groups, by name: GET /owner/groups.
func (c *Client) Groups(ctx context.Context) ([]Group, error) {
	return call[[]Group](ctx, c, http.MethodGet, "/owner/groups", nil)
}

// AddGroup makes a group in which nobody is, and which opens nothing.
func (c *Client) AddGroup(ctx context.Context, req GroupNamed) (GroupChanged, error) {
	return call[GroupChanged](ctx, c, http.MethodPost, "/owner/groups", req)
}

// RemoveGroup ends what a group opens, and forgets it.
func (c *Client) RemoveGroup(ctx context.Context, id string) (GroupChanged, error) {
	return call[GroupChanged](ctx, c, http.MethodDelete, groupPath(id, ""), nil)
}

// JoinGroup has a person be in a group; LeaveGroup ends that.
func (c *Client) JoinGroup(ctx context.Context, id string, req MemberRequest) (GroupChanged, error) {
	return call[GroupChanged](ctx, c, http.MethodPost, groupPath(id, "/join"), req)
}

func (c *Client) LeaveGroup(ctx context.Context, id string, req MemberRequest) (GroupChanged, error) {
	return call[GroupChanged](ctx, c, http.MethodPost, groupPath(id, "/leave"), req)
}

// FillGroup has a group of a provider fill one: who is in it there joins and leaves with that,
// as the provider says at each of their sign-ins.
func (c *Client) FillGroup(ctx context.Context, id string, req FillRequest) (GroupChanged, error) {
	return call[GroupChanged](ctx, c, http.MethodPost, groupPath(id, "/fill"), req)
}

// GrantGroup has a group open one more app, or open it longer or shorter; WithdrawGroup
// ends that.
func (c *Client) GrantGroup(ctx context.Context, id string, req GroupAppRequest) (GroupChanged, error) {
	return call[GroupChanged](ctx, c, http.MethodPost, groupPath(id, "/grant"), req)
}

func (c *Client) WithdrawGroup(ctx context.Context, id string, req GroupAppRequest) (GroupChanged, error) {
	return call[GroupChanged](ctx, c, http.MethodPost, groupPath(id, "/withdraw"), req)
}

func groupPath(id, rest string) string { return "/owner/groups/" + url.PathEscape(id) + rest }

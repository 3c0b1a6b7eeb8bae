package controlapi

import (
	"context"
	"net/http"
	"time"
)

// Paths of who may reach the computer whose device credential is sent. Only the
// owner's computer has one, so nobody else can ask.
const (
	PathPeople       = "/v1/people"        // GET: People
	PathPeopleInvite = "/v1/people/invite" // POST Invite: Person
	PathPeopleAccess = "/v1/people/grant"  // POST SetAccess: Person
	PathPeopleRemove = "/v1/people/revoke" // POST Remove: Person

	PathPeopleInvitations = "/v1/people/invitations" // POST Invitations: InvitationsMade
	PathPeopleLink        = "/v1/people/link"        // POST LinkWanted: InvitationLink
)

// People is everybody with a row on the computer, removed ones included. Apps
// are named by id, here and in what follows: the agent knows which label is
// whose at this moment, and a rename changes nobody's access.
type People struct {
	Name    string   `json:"name"` // short name of the computer
	Members []Person `json:"members"`
}

// Invite is the body of POST PathPeopleInvite. An app that the computer does not
// serve is a refusal of the whole (CodeInvalid), and nothing is written; so is a
// spent budget (CodeTooMany with Error.RetryAfter).
type Invite struct {
	Email string   `json:"email"`
	Apps  []string `json:"apps"` // ids, at least one; the link opens the first
	// Until is when the apps end: an RFC 3339 time, UntilNever, or empty to keep the
	// end that each has already. A time that is over or farther away than MaxUntil is
	// refused (CodeInvalid).
	Until string `json:"until,omitempty"`
	// Name is what it is in Invitations.
	Name string `json:"name,omitempty"`
	// Language is the tag of the mail's; English where it is empty or not spoken.
	Language string `json:"language,omitempty"`
	// Program says that a program asks and not the owner. It gives no end and takes none
	// away that the owner gave: Until is of no account. Nor does it take back that the
	// owner does not want to be asked by this person.
	Program bool `json:"program,omitempty"`
}

// UntilNever gives an app without an end, and takes the end away that it has.
const UntilNever = "never"

// MaxUntil is how far away the end of an app can be.
const MaxUntil = 10 * 366 * 24 * time.Hour

// SetAccess is the body of POST PathPeopleAccess: one app for one person. Only an app
// that is live can be given; any can be withdrawn.
type SetAccess struct {
	AccountID string `json:"accountId"`
	App       string `json:"app"` // id
	Granted   bool   `json:"granted"`
	// Until is what it is in Invite; of no account where Granted is false.
	Until string `json:"until,omitempty"`
	// Program is what it is in Invite.
	Program bool `json:"program,omitempty"`
}

// Remove is the body of POST PathPeopleRemove: the whole computer is taken away.
type Remove struct {
	AccountID string `json:"accountId"`
	Program   bool   `json:"program,omitempty"` // see Invite
	// Undo takes an invitation back: who was never on the list before, and has not accepted
	// it, leaves no row. A control plane that does not know of it keeps one.
	Undo bool `json:"undo,omitempty"`
}

// People lists who may reach the computer.
func (c *Client) People(ctx context.Context) (People, error) {
	return ask[People](ctx, c, http.MethodGet, PathPeople, nil)
}

// Invite invites an address to apps. The person's row as it is then says whether
// they have accepted before.
func (c *Client) Invite(ctx context.Context, i Invite) (Person, error) {
	return ask[Person](ctx, c, http.MethodPost, PathPeopleInvite, i)
}

// SetAccess gives or withdraws one app.
func (c *Client) SetAccess(ctx context.Context, g SetAccess) (Person, error) {
	return ask[Person](ctx, c, http.MethodPost, PathPeopleAccess, g)
}

// Remove takes the whole computer away from a person. Their row stays.
func (c *Client) Remove(ctx context.Context, r Remove) (Person, error) {
	return ask[Person](ctx, c, http.MethodPost, PathPeopleRemove, r)
}

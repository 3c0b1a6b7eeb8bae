package controlapi

import (
	"context"
	"net/http"
	"time"
)

// MaxInvited is how many addresses one Invitations may name.
const MaxInvited = 50

// Invitations is the body of POST PathPeopleInvitations: several addresses are
// invited to the same apps, each as by an Invite of its own, and what the owner
// wrote to them. A control plane from before it answers 404.
type Invitations struct {
	Emails []string `json:"emails"` // at most MaxInvited
	Apps   []string `json:"apps"`   // ids, at least one; a link opens the first
	// Until is what it is in Invite.
	Until string `json:"until,omitempty"`
	// Line is what the owner writes, and Name what they call themselves. Both are shown
	// beside the owner's address and never in place of it; both may be empty.
	Line string `json:"line,omitempty"`
	Name string `json:"name,omitempty"`
	// Language is what it is in Invite.
	Language string `json:"language,omitempty"`
	// NoMail makes the invitations and mails nothing.
	NoMail bool `json:"noMail,omitempty"`
}

// InvitationMade is what became of one address: Person and Link, or Refused.
type InvitationMade struct {
	Email   string          `json:"email"` // canonical, or as it was asked for
	Person  *Person         `json:"person,omitempty"`
	Link    *InvitationLink `json:"link,omitempty"`
	Refused *Error          `json:"refused,omitempty"`
}

// InvitationsMade answers Invitations, in the order of the addresses, each once.
type InvitationsMade struct {
	Invitations []InvitationMade `json:"invitations"`
}

// InvitationLink is the address of an invitation that its owner hands over. It names
// the invitation and signs nobody in.
type InvitationLink struct {
	URL   string    `json:"url"`
	Until time.Time `json:"until"`
}

// LinkWanted is the body of POST PathPeopleLink: it is answered for the newest
// invitation of a person that is open, and refused with CodeInvalid where none is.
type LinkWanted struct {
	AccountID string `json:"accountId"`
}

// InviteAll invites several addresses. An error is of the whole: nobody was invited.
func (c *Client) InviteAll(ctx context.Context, i Invitations) (InvitationsMade, error) {
	return ask[InvitationsMade](ctx, c, http.MethodPost, PathPeopleInvitations, i)
}

// InvitationLink is the address of a person's newest open invitation.
func (c *Client) InvitationLink(ctx context.Context, w LinkWanted) (InvitationLink, error) {
	return ask[InvitationLink](ctx, c, http.MethodPost, PathPeopleLink, w)
}

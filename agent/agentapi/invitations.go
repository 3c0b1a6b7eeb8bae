package agentapi

import (
	"context"
	"net/http"
	"time"
)

// MaxInvited is how many addresses one call invites: as many as an owner may invite
// in a day.
const MaxInvited = 50

// InvitationsRequest is the body of POST /owner/people/invitations: the same apps for
// several addresses at once. Only the owner can ask for it, and only here is there a
// line of theirs.
type InvitationsRequest struct {
	Emails []string `json:"emails"` // at most MaxInvited
	Apps   []string `json:"apps"`   // labels
	// Line is what the owner writes to them, or empty: one line of at most 200
	// characters without a web address.
	Line string `json:"line,omitempty"`
	// Until is when the apps end for them, as in InviteRequest.
	Until string `json:"until,omitempty"`
	// NoMail makes the invitations and mails nothing: the owner hands over the links.
	NoMail bool `json:"noMail,omitempty"`
}

// Invited is what became of one address of an InvitationsRequest: an invitation, or
// why there is none.
type Invited struct {
	Email     string          `json:"email"` // as the control plane knows it, or as it was asked for
	Status    string          `json:"status,omitempty"`
	AccountID string          `json:"accountId,omitempty"`
	URL       string          `json:"url,omitempty"`  // of the first app named
	Link      *InvitationLink `json:"link,omitempty"` // nil from a control plane that knows none
	Error     string          `json:"error,omitempty"`
}

// Invitations answers an InvitationsRequest, an entry for each address in the order they
// were given, without those that were named twice.
type Invitations struct {
	Invitations []Invited `json:"invitations"`
}

// InvitationLink is the address of an invitation that the owner hands over
// themselves. It names the invitation and signs nobody in: whoever opens it
// has to prove the invited address by a code mailed to it.
type InvitationLink struct {
	URL   string    `json:"url"`
	Until time.Time `json:"until"` // when the invitation ends
}

// LinkRequest is the body of POST /owner/people/link.
type LinkRequest struct {
	AccountID string `json:"accountId"`
}

// InviteAll invites several addresses to the same apps: POST
// /owner/people/invitations. An error is of the whole; nobody was invited then. What
// was refused for one address stands in its entry.
func (c *Client) InviteAll(ctx context.Context, req InvitationsRequest) (Invitations, error) {
	return call[Invitations](ctx, c, http.MethodPost, "/owner/people/invitations", req)
}

// InvitationLink is the address of the newest invitation of somebody that was not
// used yet: POST /owner/people/link. CodeConflict when there is none.
func (c *Client) InvitationLink(ctx context.Context, accountID string) (InvitationLink, error) {
	return call[InvitationLink](ctx, c, http.MethodPost, "/owner/people/link", LinkRequest{AccountID: accountID})
}

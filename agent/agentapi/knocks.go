package agentapi

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Knock is somebody who is signed in, may not open what they asked for, and asks the
// owner to be let in. They wait on the page.
type Knock struct {
	ID        string `json:"id"`
	AccountID string `json:"accountId"`
	Email     string `json:"email"` // verified: they signed in with it
	// App is the label of the app they would like; empty when they asked at the
	// launcher, for none in particular. Such a one is answered by an invitation, or
	// by KnockNo and KnockNever.
	App string `json:"app"`
	// Known is true for people who are invited to this computer or active on it.
	Known bool      `json:"known"`
	At    time.Time `json:"at"`
}

// Answers to a Knock.
const (
	KnockToday  = "today"  // until midnight, local time
	KnockAlways = "always" // until the owner takes it away
	KnockNo     = "no"     // nothing is heard of this person and app for 30 days
	KnockNever  = "never"  // nothing is heard of this person until the owner invites them
)

// KnockAnswer is the body of POST /owner/knocks/{id}/answer.
type KnockAnswer struct {
	Answer string `json:"answer"` // KnockToday, KnockAlways, KnockNo or KnockNever
}

// KnockAnswered answers it.
type KnockAnswered struct {
	OK    bool   `json:"ok"`
	Email string `json:"email"`
	App   string `json:"app"` // label
	// Status is set by a yes: PersonActive for somebody who can open the app now,
	// PersonPending for somebody who can once they accepted on the page they wait on.
	Status string `json:"status,omitempty"`
	// Until is when KnockToday ends.
	Until *time.Time `json:"until,omitempty"`
	URL   string     `json:"url,omitempty"` // of the app, after a yes
}

// Knocks lists who waits for an answer, oldest first: GET /owner/knocks.
func (c *Client) Knocks(ctx context.Context) ([]Knock, error) {
	return call[[]Knock](ctx, c, http.MethodGet, "/owner/knocks", nil)
}

// AnswerKnock answers one: POST /owner/knocks/{id}/answer. CodeNotFound when it was
// answered, or its time is over.
func (c *Client) AnswerKnock(ctx context.Context, id, answer string) (KnockAnswered, error) {
	return call[KnockAnswered](ctx, c, http.MethodPost, "/owner/knocks/"+url.PathEscape(id)+"/answer", KnockAnswer{answer})
}

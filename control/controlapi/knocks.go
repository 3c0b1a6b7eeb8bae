package controlapi

import (
	"context"
	"net/http"
	"time"
)

// Knocks: somebody who is signed in, and may not open what they asked for, asks the
// owner on the page that says so. The owner's answer goes to PathKnocksAnswer.
const (
	PathKnock        = "/knock"            // the page; PathVisit leads to it, and so do agents' own
	PathKnocksAnswer = "/v1/knocks/answer" // POST AnswerKnock: Person
)

// ParamHost is the query parameter of PathKnock beside ParamComputer and ParamApp: the
// host that the visitor asked for, with its port.
const ParamHost = "host"

// KnocksFrom says from whom a computer takes knocks. Its agent tells (Apps.Knocks),
// and one that does not cannot answer any.
type KnocksFrom string

const (
	KnocksFromNobody    KnocksFrom = ""
	KnocksFromKnown     KnocksFrom = "known"     // people who are invited or active on it
	KnocksFromEverybody KnocksFrom = "everybody" // whoever is signed in
)

// Knock waits for the owner's answer.
type Knock struct {
	ID        string `json:"id"`
	AccountID string `json:"accountId"`
	Email     string `json:"email"` // verified: they signed in with it
	// App is the id of the app asked for; empty for the launcher.
	App string `json:"app"`
	// Known says whether they are invited to this computer or active on it.
	Known bool      `json:"known"`
	At    time.Time `json:"at"`
}

// KnockAnswer is the owner's.
type KnockAnswer string

const (
	KnockYes   KnockAnswer = "yes"
	KnockNo    KnockAnswer = "no"
	KnockNever KnockAnswer = "never" // and no knock of this person is told again
)

// AnswerKnock is the body of POST PathKnocksAnswer. Until is when what a yes gives
// ends, as in Invite; always is UntilNever. CodeNotFound: it was answered, or its time
// is over.
type AnswerKnock struct {
	ID     string      `json:"id"`
	Answer KnockAnswer `json:"answer"`
	Until  string      `json:"until,omitempty"`
}

// AnswerKnock answers a knock. After a yes the person's row says whether they can
// open the app now (active), or once they accepted on the page they wait on (pending).
func (c *Client) AnswerKnock(ctx context.Context, a AnswerKnock) (Person, error) {
	return ask[Person](ctx, c, http.MethodPost, PathKnocksAnswer, a)
}

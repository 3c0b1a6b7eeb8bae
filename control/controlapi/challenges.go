package controlapi

import (
	"context"
	"net/http"
)

// PathChallenges takes what an authority looks for in the DNS before it certifies all names of
// a computer (DNS-01, RFC 8555, section 8.4).
const PathChallenges = "/v1/challenges" // PUT Challenges

const (
	// ChallengePrefix stands before the root host where its challenges are.
	ChallengePrefix = "_acme-challenge."
	// MaxChallenges of one computer are there at a time: the root host and the names below it
	// have one each, and so may another order that was given up.
	MaxChallenges = 4
	// ChallengeSize is how many characters each has: base64url of a SHA-256.
	ChallengeSize = 43
)

// Challenges is the body of PUT PathChallenges: all that are to be in the DNS from now on, for
// some minutes. It is refused with CodeForbidden where the control plane publishes none (see
// Snapshot.Challenges), and with CodeTooMany after too many new ones.
type Challenges struct {
	Values []string `json:"values"`
	// Authority is how records CAA call the one that certifies this computer, and Account the
	// computer's account there (accounturi, RFC 8657): while they are known the DNS lets
	// nobody else get a certificate. Both or neither are empty.
	Authority string `json:"authority,omitempty"`
	Account   string `json:"account,omitempty"`
}

// PublishChallenges has the control plane publish these challenges and no others.
func (c *Client) PublishChallenges(ctx context.Context, all Challenges) error {
	return c.call(ctx, http.MethodPut, PathChallenges, all, nil)
}

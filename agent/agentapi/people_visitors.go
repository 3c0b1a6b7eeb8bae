package agentapi

// MaxVisitors is how many visitors are listed at once.
const MaxVisitors = 500

// Visitor is somebody with something open now: a person in their browsers, or,
// where GrantID is set, a remote client that opens apps in their name.
type Visitor struct {
	AccountID   string   `json:"accountId"`
	Email       string   `json:"email"`
	GrantID     string   `json:"grantId,omitempty"`
	ClientName  string   `json:"clientName,omitempty"`
	Apps        []string `json:"apps"`        // labels
	Connections int      `json:"connections"` // open ones
}

// DisconnectRequest is the body of POST /owner/visitors/disconnect: a person's
// browsers, or with a GrantID one remote client of theirs.
type DisconnectRequest struct {
	AccountID string `json:"accountId"`
	GrantID   string `json:"grantId,omitempty"`
}

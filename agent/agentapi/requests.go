package agentapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// VisitorRequest is one HTTP request that a visitor made at an app's address, once
// it was over. The agent keeps the last of each app in memory; never a query, a
// header or a body.
type VisitorRequest struct {
	// Seq grows with every request; it is asked with for those that came later.
	Seq    uint64    `json:"seq"`
	At     time.Time `json:"at"`
	App    string    `json:"app"` // name
	Method string    `json:"method"`
	Path   string    `json:"path"`   // what does not print is written %XX
	Status int       `json:"status"` // 101 for a WebSocket, once it is open; 0 for no answer
	MS     int64     `json:"ms"`     // to the end of the answer
	Email  string    `json:"email"`  // empty for somebody who has not signed in
	Error  string    `json:"error"`  // what was wrong with the app, empty for nothing
}

// VisitorRequests is the answer of GET /owner/requests.
type VisitorRequests struct {
	On       bool             `json:"on"`  // what Settings.Requests says
	Seq      uint64           `json:"seq"` // to ask with next
	Requests []VisitorRequest `json:"requests"`
}

// MaxWait is how long GET /owner/requests waits at most, in seconds.
const MaxWait = 8

// Requests lists what visitors asked of an app, or of all apps for an empty name,
// after a number, oldest first; wait has it wait that many seconds for the first
// one: GET /owner/requests?app=NAME&after=SEQ&wait=SECONDS.
func (c *Client) Requests(ctx context.Context, app string, after uint64, wait int) (VisitorRequests, error) {
	q := url.Values{}
	if app != "" {
		q.Set("app", app)
	}
	if after > 0 {
		q.Set("after", formatID(after))
	}
	if wait > 0 {
		q.Set("wait", strconv.Itoa(wait))
	}
	return call[VisitorRequests](ctx, c, http.MethodGet, "/owner/requests?"+q.Encode(), nil)
}

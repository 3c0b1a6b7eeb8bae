package agentapi

import (
	"context"
	"net/http"
	"time"
)

// Listening is a port of this computer on which a program takes connections now, one of
// the list that answers GET /owner/listening. It is read from the system's tables of
// sockets: nobody is sent anything for it.
type Listening struct {
	Port int `json:"port"`
	// Program and User are as far as the system tells; empty where it does not.
	Program string `json:"program"`
	User    string `json:"user"`
	// Own is true of a program of the user this Porchlight runs as.
	Own bool `json:"own"`
	// Network is true where other machines can open the port as it is, without
	// Porchlight: it is not only on a loopback address.
	Network bool `json:"network"`
	// NotOffered says why nobody is offered to share it, one of the NotOffered words;
	// empty where it is offered.
	NotOffered string `json:"notOffered,omitempty"`
	// Looks is true where Look may ask it without having been told to for this port.
	Looks bool `json:"looks"`
	MeantFor
	// Since is when it was first seen to listen, or a minute before the first look where it
	// was there by then; the newest came last.
	Since time.Time `json:"since"`
	// Steady is true of what has listened for a minute, at a port that the system did not
	// just hand out; Passing of what has not, at one that it did: mostly some helper.
	Steady  bool `json:"steady,omitempty"`
	Passing bool `json:"passing,omitempty"`
}

// MeantFor is what a port is meant for, as the engine decides it.
type MeantFor struct {
	// Published is true where a live app is at this port. App is its name, or that of
	// the app that was approved for the port and only the owner opened, or asks for it;
	// Status is how that one stands. Both are empty for none.
	Published bool   `json:"published"`
	App       string `json:"app,omitempty"`
	Status    Status `json:"status,omitempty"`
	// Name and Label are that app's; else what it could be shared as: free, and fit to
	// be an app's.
	Name  string `json:"name"`
	Label string `json:"label"`
}

// Why a port is not offered.
const (
	NotOfferedOwn      = "own"      // Porchlight's own
	NotOfferedDatabase = "database" // or a cache
	NotOfferedLogin    = "login"    // remote login
	NotOfferedMail     = "mail"
	NotOfferedNames    = "names"  // DNS
	NotOfferedScreen   = "screen" // a screen or desktop, shown elsewhere
	NotOfferedPrinting = "printing"
	NotOfferedFiles    = "files"    // file sharing
	NotOfferedMessages = "messages" // queues and brokers
	NotOfferedControl  = "control"  // whoever opens it rules over a program or the computer
	NotOfferedSystem   = "system"   // below 1024, where the system's own services are
)

// Look is the body of POST /owner/listening/look: to ask one listener for its title
// and icon, while the owner has the list open.
type Look struct {
	Port int `json:"port"`
	// Asked is true where the owner pressed a button for this port, which a program of
	// another user needs.
	Asked bool `json:"asked,omitempty"`
}

// Looked is what was found. What was not is empty.
type Looked struct {
	Port  int    `json:"port"`
	Title string `json:"title"` // at most 80 characters, fit to be shown
	// Icon is a PNG of 64 by 64, drawn anew, as base64.
	Icon string `json:"icon,omitempty"`
	// Name and Label are what it could be shared as, by its title.
	Name  string `json:"name"`
	Label string `json:"label"`
}

// Listening lists what listens on this computer, by port.
func (c *Client) Listening(ctx context.Context) ([]Listening, error) {
	return call[[]Listening](ctx, c, http.MethodGet, "/owner/listening", nil)
}

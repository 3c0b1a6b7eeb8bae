package agentapi

import (
	"context"
	"strings"
	"time"

	"porchlight/internal/words"
)

// Health says what an app does when it is asked: the agent's own question, or a
// visitor's that failed since.
type Health string

const (
	HealthUnknown Health = ""        // not asked yet
	HealthAnswers Health = "answers" // also with an error of its own
	HealthNothing Health = "nothing" // nothing listens on its port
	HealthRefuses Health = "refuses" // every request that names its address
	HealthHTTPS   Health = "https"   // speaks HTTPS, and is asked without
	HealthH2C     Health = "h2c"     // speaks HTTP/2 without TLS, and is asked in HTTP/1.1
	HealthSilent  Health = "silent"  // takes connections and says nothing
	HealthWrong   Health = "wrong"   // answers what is no answer
)

// Compared is what of a visitor's request an app may compare with the address that it
// believes to have.
type Compared string

const (
	ComparedForm      Compared = "form"      // sent by a page of its own
	ComparedCall      Compared = "call"      // of a script of such a page
	ComparedWebSocket Compared = "webSocket" // its upgrade
)

// AppHealth is how an approved app does.
type AppHealth struct {
	Health Health `json:"health"`
	// Ailment says in a few words what keeps visitors from it while it is on; empty for
	// nothing that is known.
	Ailment string `json:"ailment,omitempty"`
	// HealthDetail is a sentence about it, for the owner; empty while nothing is
	// known.
	HealthDetail string `json:"healthDetail"`
	// HealthWords is HealthDetail with its arguments apart, to be said in another
	// language.
	HealthWords words.Text `json:"healthDetailWords,omitempty"`
	// HealthOption is the change of options that would help, as ChangeOptions
	// takes it; nil for none. It may be there for an app that answers.
	HealthOption map[string]any `json:"healthOption,omitempty"`
	// HealthStatus is the status of its first page, where that is an error.
	HealthStatus int `json:"healthStatus,omitempty"`
	// HealthNote says that it answers, and visitors do not get what they came for: an
	// error as its first page, or an option that did not help.
	HealthNote bool `json:"healthNote,omitempty"`
	// HealthMCP says that HealthDetail is about the MCP of an app that answers.
	HealthMCP bool `json:"healthMcp,omitempty"`
	// HealthAt is when that was learnt; nil while nothing is known.
	HealthAt *time.Time `json:"healthAt,omitempty"`
	// LastError is the last failure that a visitor met; nil for none since the
	// agent started, or since it answered for an hour.
	LastError *AppError `json:"lastError,omitempty"`
}

// AppError is a failure of an app that a visitor met.
type AppError struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"` // a sentence
	// Words is Text with its arguments apart, to be said in another language.
	Words words.Text `json:"textWords,omitempty"`
}

// Listens says whether something was seen listening for an app. Where nothing was,
// nobody knows yet whether other computers in the network will be able to open it.
func (a OwnerApp) Listens() bool {
	if a.Status == StatusLive {
		return a.Health != HealthNothing
	}
	return a.Listener != (Listener{})
}

// Sentence is HealthDetail of an app called so.
func (h AppHealth) Sentence(called string) string {
	if rest, ok := strings.CutPrefix(h.HealthDetail, "It "); ok {
		return called + " " + rest
	}
	if h.HealthDetail == "" {
		return ""
	}
	return called + ": " + strings.ToLower(h.HealthDetail[:1]) + h.HealthDetail[1:]
}

// Approved answers POST /owner/apps/{name}/approve: the app as it was published, and
// how it does; nil where nothing is known.
type Approved struct {
	Publication
	*AppHealth
}

// Does is how the app does, as far as is known.
func (a Approved) Does() AppHealth {
	if a.AppHealth == nil {
		return AppHealth{}
	}
	return *a.AppHealth
}

// Ails says that visitors do not get what they came for.
func (h AppHealth) Ails() bool { return h.Ailment != "" }

// Probe asks a live app how it does, at most once a minute, and returns what
// is known of it then: POST /owner/apps/{name}/probe.
func (c *Client) Probe(ctx context.Context, name string) (AppHealth, error) {
	return onApp[AppHealth](ctx, c, name, "probe", nil)
}

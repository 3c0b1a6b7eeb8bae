package agentapi

import (
	"context"
	"time"
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

// AppHealth is how an approved app does.
type AppHealth struct {
	Health Health `json:"health"`
	// HealthDetail is a sentence about it, for the owner; empty while nothing is
	// known.
	HealthDetail string `json:"healthDetail"`
	// HealthOption is the change of options that would help, as ChangeOptions
	// takes it; nil for none. It may be there for an app that answers.
	HealthOption map[string]any `json:"healthOption,omitempty"`
	// HealthAt is when that was learnt; nil while nothing is known.
	HealthAt *time.Time `json:"healthAt,omitempty"`
	// LastError is the last failure that a visitor met; nil for none since the
	// agent started.
	LastError *AppError `json:"lastError,omitempty"`
}

// AppError is a failure of an app that a visitor met.
type AppError struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"` // a sentence
}

// Ails says that visitors do not get what they came for.
func (h AppHealth) Ails() bool { return h.Health != HealthUnknown && h.Health != HealthAnswers }

// Probe asks a live app for its first page, at most once a minute, and returns what
// is known of it then: POST /owner/apps/{name}/probe.
func (c *Client) Probe(ctx context.Context, name string) (AppHealth, error) {
	return onApp[AppHealth](ctx, c, name, "probe", nil)
}

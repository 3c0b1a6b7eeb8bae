package agentapi

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"porchlight/internal/words"
)

// DomainState is how an own domain stands.
type DomainState string

const (
	DomainWaiting DomainState = "waiting" // its records were not found yet
	DomainProven  DomainState = "proven"  // visitors are brought
	DomainGone    DomainState = "gone"    // visitors are brought until Until: resolvers say that a record is gone
	DomainUnsure  DomainState = "unsure"  // the same: resolvers do not answer, or disagree
)

// DNSRecord is what the owner enters where their domain is registered.
type DNSRecord struct {
	Type  string `json:"type"`
	Name  string `json:"name"`
	Value string `json:"value"`
}

// OwnDomain is a DNS name of the owner's that leads to one app.
type OwnDomain struct {
	Name    string      `json:"name"`
	App     string      `json:"app"` // name; empty of one that is gone
	State   DomainState `json:"state"`
	Until   *time.Time  `json:"until,omitempty"`
	Records []DNSRecord `json:"records"`
	// Problem is a sentence about what the last look found wrong; empty for nothing.
	Problem string `json:"problem,omitempty"`
	// Words is Problem with its arguments apart, to be said in another language.
	Words words.Text `json:"problemWords,omitempty"`
}

// DomainRequest is the body of POST /owner/domains.
type DomainRequest struct {
	Name string `json:"name"`
	App  string `json:"app"` // name or label
}

// OwnDomains lists the own domains: GET /owner/domains.
func (c *Client) OwnDomains(ctx context.Context) ([]OwnDomain, error) {
	return call[[]OwnDomain](ctx, c, http.MethodGet, "/owner/domains", nil)
}

// AddDomain begins to prove an own domain for an app: POST /owner/domains.
func (c *Client) AddDomain(ctx context.Context, req DomainRequest) (OwnDomain, error) {
	return call[OwnDomain](ctx, c, http.MethodPost, "/owner/domains", req)
}

// CheckDomain has the records looked up now: POST /owner/domains/{name}/check.
func (c *Client) CheckDomain(ctx context.Context, name string) (OwnDomain, error) {
	return call[OwnDomain](ctx, c, http.MethodPost, "/owner/domains/"+url.PathEscape(name)+"/check", nil)
}

// RemoveDomain ends an own domain: DELETE /owner/domains/{name}.
func (c *Client) RemoveDomain(ctx context.Context, name string) (Done, error) {
	return call[Done](ctx, c, http.MethodDelete, "/owner/domains/"+url.PathEscape(name), nil)
}

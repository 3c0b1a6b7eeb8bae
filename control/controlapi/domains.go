package controlapi

import (
	"context"
	"net/http"
	"time"
)

// Paths of own domains: DNS names of the owner's that lead to one of their apps each.
const (
	PathDomains       = "/v1/domains"        // GET: Domains; POST AddDomain: Domain
	PathDomainsLook   = "/v1/domains/look"   // POST NamedDomain: Domain, as the DNS says it now
	PathDomainsRemove = "/v1/domains/remove" // POST NamedDomain
)

// MaxDomains bounds the own domains of one computer.
const MaxDomains = 20

// DomainState is how an own domain stands.
type DomainState string

const (
	DomainWaiting DomainState = "waiting" // its records were not found yet, or not for too long
	DomainProven  DomainState = "proven"  // they were found at the last look
	DomainGone    DomainState = "gone"    // they were there, and resolvers say that they are not any more
	DomainUnsure  DomainState = "unsure"  // they were there, and resolvers did not answer, or disagreed
)

// DomainPrefix stands before an own domain where its record TXT is.
const DomainPrefix = "_porchlight."

// DomainWhy says what a look found wrong.
type DomainWhy string

const (
	DomainNoText      DomainWhy = "no-txt"       // there is no record TXT
	DomainOtherText   DomainWhy = "other-txt"    // there is one that says something else
	DomainNoName      DomainWhy = "no-name"      // nothing is at the name
	DomainOtherName   DomainWhy = "other-name"   // it leads to something else
	DomainOtherOfOurs DomainWhy = "other-ours"   // to another computer of this service
	DomainLoop        DomainWhy = "loop"         // over too many links
	DomainPrivate     DomainWhy = "private"      // to an address that is none of the internet
	DomainNoAnswer    DomainWhy = "no-answer"    // a resolver did not answer, or with a failure
	DomainDisagree    DomainWhy = "disagreement" // one resolver finds it, and one does not
)

// Astray says that the name leads to somebody else, who is sent what browsers keep for it.
func (w DomainWhy) Astray() bool { return w == DomainOtherName || w == DomainPrivate }

// DNSRecord is one that the owner makes where their domain is registered.
type DNSRecord struct {
	Type  string `json:"type"` // TXT or CNAME
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Domain is an own domain of a computer.
type Domain struct {
	Name  string      `json:"name"` // lower case, in ASCII
	AppID string      `json:"appId"`
	State DomainState `json:"state"`
	// Until is when visitors stop being brought where it is gone or unsure; zero otherwise.
	Until time.Time `json:"until,omitzero"`
	// Held is since when visitors have been brought without a break: where it changes, the
	// name may have been somebody else's meanwhile.
	Held    time.Time   `json:"held,omitzero"`
	Records []DNSRecord `json:"records"`
	// Why says what the last look found wrong; empty before the first, and where nothing was.
	Why DomainWhy `json:"why,omitempty"`
	// CAA are the authorities whose certificates the DNS of the name allows; nil for all.
	CAA []string `json:"caa,omitzero"`
}

// Routed says whether visitors are brought at a time.
func (d Domain) Routed(now time.Time) bool {
	return d.State == DomainProven || d.State != DomainWaiting && now.Before(d.Until)
}

// Astray says that all resolvers find it so: no session made there is good any more.
func (d Domain) Astray() bool { return d.State == DomainGone && d.Why.Astray() }

// Domains answers GET PathDomains, by name.
type Domains struct {
	Domains []Domain `json:"domains"`
}

// AddDomain is the body of POST PathDomains. The same again changes nothing. What is no name
// for it is refused with CodeInvalid, another's with CodeForbidden, one too many with
// CodeForbidden, too many tries with CodeTooMany.
type AddDomain struct {
	Name  string `json:"name"`
	AppID string `json:"appId"`
}

// NamedDomain is the body of POST PathDomainsLook and PathDomainsRemove.
type NamedDomain struct {
	Name string `json:"name"`
}

// Domains lists the own domains of this computer.
func (c *Client) Domains(ctx context.Context) ([]Domain, error) {
	out, err := ask[Domains](ctx, c, http.MethodGet, PathDomains, nil)
	return out.Domains, err
}

// AddDomain begins to prove an own domain for an app.
func (c *Client) AddDomain(ctx context.Context, add AddDomain) (Domain, error) {
	return ask[Domain](ctx, c, http.MethodPost, PathDomains, add)
}

// LookAtDomain has an own domain looked up now.
func (c *Client) LookAtDomain(ctx context.Context, name string) (Domain, error) {
	return ask[Domain](ctx, c, http.MethodPost, PathDomainsLook, NamedDomain{name})
}

// RemoveDomain ends an own domain. Its records are worth nothing afterwards.
func (c *Client) RemoveDomain(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodPost, PathDomainsRemove, NamedDomain{name}, nil)
}

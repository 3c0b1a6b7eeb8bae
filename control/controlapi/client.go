package controlapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"porchlight/internal/words"
)

// MaxAnswer bounds what a Client reads of an answer, in bytes. Nothing a control
// plane answers is longer.
const MaxAnswer = 8 << 20

// Client speaks to one control plane. Set the fields before its first use; its
// methods are safe for concurrent use.
//
// Every error of a method is an *Error: a refusal as the control plane wrote
// it, or CodeUnavailable where there was no answer to understand, which then
// wraps what went wrong (context.Canceled, for one).
type Client struct {
	BaseURL    string // the auth URL, for example https://control.localhost:8443
	Credential string // the device credential
	// HTTP does the requests, but follows no redirect.
	HTTP *http.Client

	// OnClock is told with each answer how far the control plane's clock is at
	// least ahead of this computer's, negative where it is behind; 0 where the
	// answer's Date shows no difference. nil for not.
	OnClock func(ahead time.Duration)
}

// idleWait is how long a connection waits for the next request: a computer whose sync the
// tunnel carries asks seldom, and each connection is a file of the node.
const idleWait = 10 * time.Second

// NewTransport makes a transport for a Client, its own so that its connections
// are closed with it. It trusts roots, or those of the system when nil. HTTP/2
// is off: a request is to have a connection of its own, whose failing concerns nothing
// else.
func NewTransport(roots *x509.CertPool) *http.Transport {
	return &http.Transport{
		DialContext:           DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 15 * time.Second,
		IdleConnTimeout:       idleWait,
		MaxIdleConnsPerHost:   2,
		TLSNextProto:          map[string]func(string, *tls.Conn) http.RoundTripper{},
		Proxy:                 http.ProxyFromEnvironment,
	}
}

// Answers says whether the control plane answers, by what costs it nothing.
func (c *Client) Answers(ctx context.Context) error {
	return c.call(ctx, http.MethodGet, PathPublicKey, nil, &PublicKey{})
}

// PutApps reports the approved apps, all of them.
func (c *Client) PutApps(ctx context.Context, apps Apps) error {
	return c.call(ctx, http.MethodPut, PathApps, apps, nil)
}

// RedeemVisit exchanges a visitor's code for who they are.
func (c *Client) RedeemVisit(ctx context.Context, r Redeem) (Visitor, error) {
	return ask[Visitor](ctx, c, http.MethodPost, PathVisits, r)
}

// EndBrowser signs a browser of the owner's out, and with it, here and on every computer,
// all sessions that their browsers opened: those still signed in come back by themselves.
func (c *Client) EndBrowser(ctx context.Context, b EndBrowser) error {
	return c.call(ctx, http.MethodPost, PathBrowsersEnd, b, nil)
}

// EndPasskey removes a passkey of the owner's that was not theirs, with what was made for their
// account since, and signs them out everywhere.
func (c *Client) EndPasskey(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodPost, PathPasskeysEnd, EndPasskey{ID: id}, nil)
}

// OwnersLink makes a link that signs the owner in at the control plane, once.
func (c *Client) OwnersLink(ctx context.Context, l LinkForOwner) (OwnersLink, error) {
	return ask[OwnersLink](ctx, c, http.MethodPost, PathOwnersLink, l)
}

// Grants lists the grants for this computer.
func (c *Client) Grants(ctx context.Context) ([]Grant, error) {
	out, err := ask[Grants](ctx, c, http.MethodGet, PathGrants, nil)
	return out.Grants, err
}

// RevokeGrant ends a grant for this computer; one that has ended already
// is no error.
func (c *Client) RevokeGrant(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodPost, PathGrantsRevoke, RevokeGrant{ID: id}, nil)
}

// call asks with the credential and reads an answer, unless that is nil.
func (c *Client) call(ctx context.Context, method, path string, body, answer any) error {
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	return c.do(req, answer)
}

// ask is call for an answer of one kind.
func ask[Answer any](ctx context.Context, c *Client, method, path string, body any) (out Answer, err error) {
	err = c.call(ctx, method, path, body, &out)
	return out, err
}

func (c *Client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, &Error{Code: CodeInvalid, Message: "The request cannot be written as JSON.", cause: err}
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.BaseURL, "/")+path, r)
	if err != nil {
		return nil, &Error{Code: CodeInvalid, Message: "The address of the control plane is not valid.", cause: err}
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+c.Credential)
	req.Header.Set(HeaderProtocol, Protocol)
	return req, nil
}

// do sends a request and decodes the answer into out unless that is nil.
func (c *Client) do(req *http.Request, out any) error {
	httpClient := *c.HTTP
	httpClient.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the credential goes to BaseURL only
	}
	asked := time.Now()
	resp, err := httpClient.Do(req)
	if err != nil {
		return unavailable(req, err)
	}
	defer resp.Body.Close()
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil && c.OnClock != nil {
		c.OnClock(ClockAhead(date, asked, time.Now()))
	}
	body := io.Reader(io.LimitReader(resp.Body, MaxAnswer))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return refusal(resp, body)
	}
	unasked := int64(0)
	if out == nil {
		unasked, err = io.Copy(io.Discard, body)
	} else {
		err = json.NewDecoder(body).Decode(out)
	}
	switch before := resp.Header.Get(HeaderProtocol) == ""; {
	case err != nil:
		return unavailable(req, err)
	case before && unasked > 0:
		return foreign(resp)
	case before:
		return OfBefore(resp.Request.URL.Host)
	}
	return nil
}

// ClockAhead is how far a clock that showed date at some time between asked and
// answered is at least ahead of the one they are read from. A Date has whole
// seconds, cut off (RFC 9110, section 5.6.7).
func ClockAhead(date, asked, answered time.Time) time.Duration {
	if least := date.Sub(answered); least > 0 {
		return least
	}
	return min(0, date.Add(time.Second).Sub(asked))
}

// refusal reads the error of an answer.
func refusal(resp *http.Response, body io.Reader) error {
	e := &Error{}
	err := json.NewDecoder(io.LimitReader(body, 64<<10)).Decode(e)
	switch {
	case err != nil || e.Code == "" || e.Message == "":
		e = foreign(resp)
	case resp.Header.Get(HeaderProtocol) == "":
		return OfBefore(resp.Request.URL.Host)
	}
	e.HTTPStatus = resp.StatusCode
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		e.RetryAfter = RetryAfter(seconds)
	}
	return e
}

// foreign describes an answer by its status that is not a control plane's, as a proxy in
// between would write it.
func foreign(resp *http.Response) *Error {
	return Refuse(CodeUnavailable, words.Of("%s gave an answer that is not a control plane's (status %s).", resp.Request.URL.Host, strconv.Itoa(resp.StatusCode)))
}

// ErrOfBefore is what the refusal wraps to work with a control plane of before version
// 0.1.0, which ignores what it does not know: the end of a share, for one.
var ErrOfBefore = errors.New("a control plane of before version 0.1.0")

// OfBefore is that refusal, of the control plane at host.
func OfBefore(host string) *Error {
	e := Refuse(CodeUnavailable, words.Of("%s runs a Porchlight of before 0.1.0, with which this one does not work. Ask whoever runs it to update it.", host))
	e.cause = ErrOfBefore
	return e
}

// RetryAfter is how long to wait where the control plane says so in seconds: a day at
// most.
func RetryAfter(seconds int) time.Duration {
	return time.Duration(max(0, min(seconds, 24*60*60))) * time.Second
}

// unavailable describes a request that got no answer to understand.
func unavailable(req *http.Request, err error) error {
	// The cancellation's cause says more than "context canceled"; the URL that
	// url.Error adds is in the message already.
	if cause := context.Cause(req.Context()); cause != nil {
		err = cause
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	e := Refuse(CodeUnavailable, words.Of("%s does not answer.", req.URL.Host))
	e.cause = err
	return e
}

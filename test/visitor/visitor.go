// Package visitor is a small browser without a screen for the end-to-end tests
// and the demonstration: it keeps cookies, follows redirects, fills in the forms
// of pages, and finds *.localhost on this computer as browsers do, and *.test too.
package visitor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"
)

// maxPage bounds what is kept of a page, in bytes.
const maxPage = 4 << 20

// Visitor has its own cookies; two visitors are two browsers.
type Visitor struct {
	client *http.Client
}

// Page is what a visit ended at.
type Page struct {
	URL    *url.URL
	Status int
	Header http.Header
	Body   string
}

// New makes a visitor that trusts the certificates of roots.
func New(roots *x509.CertPool) *Visitor {
	jar, _ := cookiejar.New(nil) // the error is always nil
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	return &Visitor{client: &http.Client{
		Jar:     jar,
		Timeout: 30 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots},
			ForceAttemptHTTP2: true,
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				host, port, err := net.SplitHostPort(addr)
				if err != nil {
					return nil, err
				}
				if strings.HasSuffix(host, ".localhost") || strings.HasSuffix(host, ".test") {
					addr = net.JoinHostPort("127.0.0.1", port)
				}
				return dialer.DialContext(ctx, network, addr)
			},
		},
	}}
}

// Close drops the visitor's idle connections.
func (v *Visitor) Close() { v.client.CloseIdleConnections() }

// Open goes to an address as a click does.
func (v *Visitor) Open(ctx context.Context, address string) (*Page, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	return v.navigate(req)
}

// Do sends a request of the caller's making with the visitor's cookies.
func (v *Visitor) Do(req *http.Request) (*http.Response, error) { return v.client.Do(req) }

// Once is Do that does not follow a redirect.
func (v *Visitor) Once(req *http.Request) (*http.Response, error) {
	client := *v.client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client.Do(req)
}

// Cookies are those the visitor would send to u.
func (v *Visitor) Cookies(u *url.URL) []*http.Cookie { return v.client.Jar.Cookies(u) }

// SetCookies has the visitor send these to u from now on.
func (v *Visitor) SetCookies(u *url.URL, cookies []*http.Cookie) { v.client.Jar.SetCookies(u, cookies) }

// Submit presses the button of the page's form that has the given field, or the
// page's first form when field is empty, with values filled in.
func (v *Visitor) Submit(ctx context.Context, page *Page, field string, values map[string]string) (*Page, error) {
	form, err := page.form(field)
	if err != nil {
		return nil, err
	}
	for name, value := range values {
		form.fields.Set(name, value)
	}
	target, err := page.URL.Parse(form.action)
	if err != nil {
		return nil, fmt.Errorf("the form's action %q: %w", form.action, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), strings.NewReader(form.fields.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", page.URL.Scheme+"://"+page.URL.Host)
	return v.navigate(req)
}

func (v *Visitor) navigate(req *http.Request) (*Page, error) {
	req.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	req.Header.Set("Sec-Fetch-Mode", "navigate")
	req.Header.Set("Sec-Fetch-Dest", "document")
	resp, err := v.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage))
	if err != nil {
		return nil, err
	}
	return &Page{URL: resp.Request.URL, Status: resp.StatusCode, Header: resp.Header, Body: string(body)}, nil
}

type form struct {
	action string
	fields url.Values
}

// form finds the POST form with the named field, hidden fields included.
func (p *Page) form(field string) (*form, error) {
	doc, err := html.Parse(strings.NewReader(p.Body))
	if err != nil {
		return nil, err
	}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "form" || !strings.EqualFold(attr(n, "method"), "post") {
			continue
		}
		f, has := &form{action: attr(n, "action"), fields: url.Values{}}, field == ""
		for c := range n.Descendants() {
			if c.Type != html.ElementNode || c.Data != "input" || attr(c, "name") == "" {
				continue
			}
			has = has || attr(c, "name") == field
			if kind := attr(c, "type"); kind != "checkbox" && kind != "radio" || slices.ContainsFunc(c.Attr, func(a html.Attribute) bool { return a.Key == "checked" }) {
				f.fields.Add(attr(c, "name"), attr(c, "value"))
			}
		}
		if has {
			return f, nil
		}
	}
	if field == "" {
		return nil, errors.New("the page has no form to submit: " + p.URL.String())
	}
	return nil, fmt.Errorf("no form of %s has a field %q", p.URL, field)
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// Mails waits for a mail to somebody, and returns its link.
type Mails interface {
	Link(ctx context.Context, to string) (string, error)
}

// SignIn opens address, has a link mailed to email, waits for it, and clicks it in
// this browser; it ends at what address shows once signed in.
func (v *Visitor) SignIn(ctx context.Context, address, email string, mails Mails) (*Page, error) {
	page, err := v.Open(ctx, address)
	if err != nil {
		return nil, err
	}
	if page, err = v.Submit(ctx, page, "email", map[string]string{"email": email}); err != nil {
		return nil, fmt.Errorf("asking for the link: %w", err)
	}
	if page.Status != http.StatusOK {
		return nil, fmt.Errorf("asking for the link: HTTP %d at %s", page.Status, page.URL)
	}
	link, err := mails.Link(ctx, email)
	if err != nil {
		return nil, fmt.Errorf("waiting for the mail: %w", err)
	}
	if page, err = v.Open(ctx, link); err != nil {
		return nil, err
	}
	if _, err = v.Submit(ctx, page, "", nil); err != nil {
		return nil, fmt.Errorf("clicking the mailed link's button: %w", err)
	}
	return v.Open(ctx, address)
}

// Confirm does what the owner does to connect a computer that shows address and code: it
// signs in there, and gives the answers, which are the computer's name and a decision.
func (v *Visitor) Confirm(ctx context.Context, address, code, email string, answers map[string]string, mails Mails) (*Page, error) {
	page, err := v.SignIn(ctx, address, email, mails)
	if err == nil {
		page, err = v.Submit(ctx, page, "code", map[string]string{"code": code})
	}
	if err == nil {
		page, err = v.Submit(ctx, page, "name", answers)
	}
	return page, err
}

// Accept opens the link of an invitation and presses its one button, which signs in, too.
func (v *Visitor) Accept(ctx context.Context, link string) error {
	page, err := v.Open(ctx, link)
	if err == nil {
		page, err = v.Submit(ctx, page, "", nil)
	}
	if err == nil && page.Status != http.StatusOK {
		err = fmt.Errorf("accepting the invitation ends with HTTP %d at %s", page.Status, page.URL)
	}
	return err
}

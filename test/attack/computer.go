//go:build linux

package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"porchlight/agent/agentapi"
	"porchlight/test/rig"
	"porchlight/test/visitor"
)

const memberEmail = "bob@example.net"

// computer is somebody's computer with an agent on it in local mode.
type computer struct {
	*rig.Computer
	open    *agentapi.Client
	owner   *agentapi.Client
	account agentapi.Account
	roots   *x509.CertPool
	mails   *rig.Mails
}

// startComputer runs an agent on a data directory, a new one mostly, with more flags.
func (s *stage) startComputer(ctx context.Context, data string, more ...string) (c *computer, err error) {
	c = &computer{}
	if c.Computer, err = s.rig(s.agentFiles).Computer(ctx, data, append([]string{"--local"}, more...)...); err != nil {
		return nil, err
	}
	if c.open, c.owner, err = c.Clients(ctx); err != nil {
		return nil, err
	}
	c.mails = rig.Outbox(c.owner.Outbox)
	if c.account, err = c.owner.Account(ctx); err != nil {
		return nil, err
	}
	c.roots, err = rig.Roots(rig.Authority(data))
	return c, err
}

// publish asks for an address for an app and has the owner approve it. The agent asks no
// app how it does: whatever comes to one comes from a visitor.
func (c *computer) publish(ctx context.Context, name, label string, port int) (host string, err error) {
	if _, err := c.owner.ChangeSettings(ctx, map[string]any{"probe": false}); err != nil {
		return "", err
	}
	if _, err := c.open.Publish(ctx, agentapi.PublishRequest{Name: name, Label: label, LocalPort: port}); err != nil {
		return "", err
	}
	pub, err := c.owner.Approve(ctx, name)
	return pub.Host, err
}

// invite has the owner let somebody open apps, by label, and returns that
// person's browser, signed in, and their account.
func (c *computer) invite(ctx context.Context, email string, labels ...string) (*visitor.Visitor, agentapi.Person, error) {
	none := agentapi.Person{}
	if _, err := c.owner.Invite(ctx, agentapi.InviteRequest{Email: email, Apps: labels}); err != nil {
		return nil, none, err
	}
	link, err := c.mails.Link(ctx, email)
	if err != nil {
		return nil, none, err
	}
	browser := visitor.New(c.roots)
	if err := browser.Accept(ctx, link); err != nil {
		return nil, none, err
	}
	people, err := c.owner.People(ctx)
	if err != nil {
		return nil, none, err
	}
	i := slices.IndexFunc(people.Members, func(p agentapi.Person) bool { return p.Email == email })
	if i < 0 {
		return nil, none, errors.New(email + " is not among the people")
	}
	return browser, people.Members[i], nil
}

// cookieOf opens an app in a browser that is signed in, and returns its session
// as it goes into a request.
func cookieOf(ctx context.Context, browser *visitor.Visitor, host string) (string, error) {
	page, err := browser.Open(ctx, "https://"+host+"/hello")
	if err != nil {
		return "", err
	}
	if page.Status != http.StatusOK {
		return "", fmt.Errorf("%s answers a person who may open it with HTTP %d", host, page.Status)
	}
	for _, cookie := range browser.Cookies(&url.URL{Scheme: "https", Host: host, Path: "/"}) {
		// The mark of the app, whose name goes on behind the instance, opens nothing.
		if rest, ours := strings.CutPrefix(cookie.Name, "__Host-porchlight-"); ours && !strings.Contains(rest, "-") {
			return cookie.Name + "=" + cookie.Value, nil
		}
	}
	return "", errors.New(host + " gave no session")
}

// ownersCookie is the owner's session at an app.
func (c *computer) ownersCookie(ctx context.Context, name, host string) (string, error) {
	link, err := c.owner.Open(ctx, name)
	if err != nil {
		return "", err
	}
	browser := visitor.New(c.roots)
	defer browser.Close()
	if _, err := browser.Open(ctx, link.URL); err != nil {
		return "", err
	}
	return cookieOf(ctx, browser, host)
}

//go:build linux

package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"porchlight/control/controlapi"
)

const serviceToken = "X-Service-Token"

// identityTried is how often attackIdentity tries something.
const identityTried = 155

// attackIdentity has a member bring tokens to an app that is told by one who is there, and
// a stranger who got hold of the owner's show it to all that lets somebody in.
func attackIdentity(ctx context.Context, s *stage, t *tally) error {
	c, b, err := s.startWithNotes(ctx)
	if err != nil {
		return err
	}
	if _, err := c.owner.ChangeOptions(ctx, "notes", map[string]any{"identityToken": true}); err != nil {
		return err
	}
	if _, err := c.ownersCookie(ctx, "notes", b.host); err != nil {
		return err
	}
	stolen, err := b.tokenSeen()
	if err != nil {
		return err
	}
	if err := c.showEverywhere(ctx, b, stolen, t); err != nil {
		return err
	}
	browser, bob, err := c.invite(ctx, memberEmail, "Notes")
	if err != nil {
		return err
	}
	defer browser.Close()
	if b.cookie, err = cookieOf(ctx, browser, b.host); err != nil {
		return err
	}
	tr := newTrial(identity{}, mark)
	for place := range places {
		for _, how := range spellings {
			for _, value := range []string{mark, stolen} {
				target := fmt.Sprintf("/i/%d", tr.tried)
				tr.what[target] = how.what + " " + places[place]
				request := strings.ReplaceAll(forgery(b.host, b.cookie, target, serviceToken, how, place), mark, value)
				got, err := c.provoke(ctx, b.host, request)
				if err != nil {
					return fmt.Errorf("%s: %w", tr.what[target], err)
				}
				t.try(1)
				tr.answered(target, got, t)
			}
		}
	}
	return tr.judgeTokens(b, bob.AccountID, stolen, t)
}

// judgeTokens ends the app, and holds each request of bob's to one token, bob's.
func (tr *trial) judgeTokens(b *backend, bob, stolen string, t *tally) error {
	all, err := b.understood()
	if err != nil {
		return err
	}
	came := 0
	for _, one := range all {
		if !strings.HasPrefix(one.Target, "/i/") {
			continue
		}
		came++
		var said []string
		for _, field := range append(one.Fields, one.Trailers...) {
			if strings.Contains(field[1], mark) || strings.Contains(field[1], stolen) {
				t.got("%s: the app saw %.60q", tr.describe(one.Target), field)
			}
			if folded(field[0]) == folded(serviceToken) {
				said = append(said, subject(field[1]))
			}
		}
		if len(said) != 1 || said[0] != bob {
			t.got("%s: the app was told of %q", tr.describe(one.Target), said)
		}
	}
	if came == 0 || came != len(tr.accepted) {
		return fmt.Errorf("%d requests came to the app, and %d were answered", came, len(tr.accepted))
	}
	return nil
}

// tokenSeen is the last token that the app was sent.
func (b *backend) tokenSeen() (token string, err error) {
	f, err := os.Open(b.log)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for d := json.NewDecoder(f); ; {
		var one seen
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", err
		}
		for _, field := range one.Fields {
			if field[0] == serviceToken {
				token = field[1]
			}
		}
	}
	if subject(token) == "" {
		return "", fmt.Errorf("the app was told by %q who is there", token)
	}
	return token, nil
}

// subject is whom a token names, unverified; empty for what is none.
func subject(token string) string {
	var claims struct{ Sub string }
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		return ""
	}
	return claims.Sub
}

// showEverywhere shows the owner's token to the app, the launcher, the control plane and the
// owner's own interface, in each way that one of these lets somebody in by.
func (c *computer) showEverywhere(ctx context.Context, b *backend, token string, t *tally) error {
	shapes := []string{
		"Authorization: Bearer TOKEN\r\n", "Authorization: Bearer TOKEN\r\nX-Service-Token: TOKEN\r\n", "Authorization: Basic BASIC\r\n",
		"Cookie: __Host-porchlight-00000000=TOKEN; __Host-porchlight=TOKEN; session=TOKEN\r\n", "x-owner-secret: TOKEN\r\nx-engine-capability: TOKEN\r\n",
	}
	basic := base64.StdEncoding.EncodeToString([]byte(c.account.Email + ":" + token))
	auth := strings.TrimPrefix(c.account.AuthURL, "https://")
	over := func(host string) func(string) (int, error) {
		return func(request string) (int, error) {
			got, err := c.exchange(ctx, host, request)
			if err != nil || len(got) == 0 {
				return 0, err
			}
			return got[0].status, nil
		}
	}
	local := func(network, address string) func(string) (int, error) {
		return func(request string) (int, error) {
			status, _, err := knockAt(ctx, network, address, request)
			return status, err
		}
	}
	tcp := local("tcp", c.Running.API)
	for _, at := range []struct {
		host string
		ask  func(request string) (int, error)
		what string
	}{
		{b.host, over(b.host), "GET /"}, {b.host, over(b.host), "GET /.porchlight/me"},
		{c.account.Host, over(c.account.Host), "GET /.porchlight/apps"},
		{auth, over(auth), "GET " + controlapi.PathPeople}, {auth, over(auth), "GET " + controlapi.PathGrants}, {auth, over(auth), "DELETE " + controlapi.PathComputer},
		{auth, over(auth), "GET /account"},
		{c.Running.API, tcp, "GET /people"}, {c.Running.API, tcp, "GET /owner/state"}, {c.Running.API, tcp, "GET /owner/identity-key"},
		{"localhost", local("unix", c.Running.OwnerSocket), "GET /owner/state"},
	} {
		for _, shape := range shapes {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			fields := strings.NewReplacer("TOKEN", token, "BASIC", basic).Replace(shape)
			status, err := at.ask(at.what + " HTTP/1.1\r\nHost: " + at.host + "\r\n" + fields + "Connection: close\r\n\r\n")
			if err != nil {
				return fmt.Errorf("%s of %s: %w", at.what, at.host, err)
			}
			t.try(1)
			if status < 300 {
				t.got("%s of %s with %.40q: HTTP %d", at.what, at.host, shape, status)
			}
		}
	}
	return nil
}

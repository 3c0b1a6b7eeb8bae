//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"porchlight/control/controlapi"
	"porchlight/test/visitor"
)

// attackTenants has the owners of two computers of one control plane try to get
// at each other's with their own credentials, sessions and codes.
func attackTenants(ctx context.Context, s *stage, t *tally) error {
	c, err := s.startPlane(ctx, s.dir+"/plane")
	if err != nil {
		return err
	}
	maya, err := c.newTenant(ctx, "maya")
	if err != nil {
		return err
	}
	anna, err := c.newTenant(ctx, "anna")
	if err != nil {
		return err
	}
	for _, pair := range [][2]*tenant{{maya, anna}, {anna, maya}} {
		attacker, victim := pair[0], pair[1]
		if err := attacker.useCredential(ctx, victim, t); err != nil {
			return err
		}
		if err := attacker.useSessions(ctx, victim, t); err != nil {
			return err
		}
		if err := attacker.useCodes(ctx, victim, t); err != nil {
			return err
		}
	}
	for _, who := range []*tenant{maya, anna} {
		if err := who.isUntouched(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// v1 calls the interface of agents.
func (c *plane) v1(ctx context.Context, method, path, credential string, body any) (status int, answer string, err error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, "", err
	}
	req, err := http.NewRequestWithContext(ctx, method, c.AuthURL+path, bytes.NewReader(raw))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(controlapi.HeaderProtocol, controlapi.Protocol)
	if credential != "" {
		req.Header.Set("Authorization", "Bearer "+credential)
	}
	browser := visitor.New(c.roots)
	defer browser.Close()
	resp, err := browser.Once(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, string(text), err
}

// useCredential calls every route with the attacker's credential, naming what is
// the victim's, and with credentials that are none.
func (a *tenant) useCredential(ctx context.Context, victim *tenant, t *tally) error {
	people, err := victim.owner.People(ctx)
	if err != nil {
		return err
	}
	account := people.Members[0].AccountID
	state, err := victim.owner.State(ctx)
	if err != nil {
		return err
	}
	app := "notes"
	if len(state.Apps) > 0 {
		app = state.Apps[0].Name
	}
	routes := []struct {
		method, path string
		body         any
		own          bool // it answers about the caller's own computer
	}{
		{"GET", controlapi.PathPeople, nil, true},
		{"GET", controlapi.PathGrants, nil, true},
		{"GET", controlapi.PathPasswords, nil, true},
		{"POST", controlapi.PathPeopleAccess, controlapi.SetAccess{AccountID: account, App: app, Granted: true}, false},
		{"POST", controlapi.PathPeopleRemove, controlapi.Remove{AccountID: account}, false},
		{"POST", controlapi.PathPeopleInvite, controlapi.Invite{Email: "evil@example.net", Apps: []string{app}}, false},
		{"POST", controlapi.PathGrantsRevoke, controlapi.RevokeGrant{ID: "somebody-elses"}, false},
		{"POST", controlapi.PathPasswords, controlapi.MakePassword{App: app, Name: "not its own"}, false},
		{"POST", controlapi.PathPasswordsRevoke, controlapi.RevokePassword{ID: "somebody-elses"}, false},
		{"POST", controlapi.PathVisits, controlapi.Redeem{}, false},
		{"DELETE", controlapi.PathComputer + "?id=" + victim.account.Name, nil, false},
	}
	credentials := []struct{ what, value string }{
		{"of another tenant", a.credential}, {"none", ""}, {"cut", victim.credential[:len(victim.credential)-1]}, {"in capitals", strings.ToUpper(victim.credential)},
		{"twice", victim.credential + "," + victim.credential}, {"with a line", victim.credential + "x"},
	}
	fmt.Printf("   %s at %s's: routes %d × credentials %d = %d\n", a.email, victim.email, len(routes), len(credentials), len(routes)*len(credentials))
	for _, route := range routes {
		for i, credential := range credentials {
			if i == 0 && route.method == "DELETE" {
				continue // that would be its own
			}
			status, answer, err := a.plane.v1(ctx, route.method, route.path, credential.value, route.body)
			if err != nil {
				return err
			}
			t.try(1)
			switch {
			case i == 0 && route.own:
				if status != 200 || strings.Contains(answer, victim.email) || strings.Contains(answer, account) || strings.Contains(answer, victim.account.Host) {
					t.got("%s tells %s: %d %.200s", route.path, a.email, status, answer)
				}
			case i > 0 && status != 401 && status != 429, status < 300 && !(i == 0 && route.path == controlapi.PathGrantsRevoke):
				t.got("%s %s with a credential %s: %d %.120s", route.method, route.path, credential.what, status, answer)
			}
		}
	}
	return nil
}

// useSessions shows sessions of the attacker's, and of the victim's other hosts,
// to the victim's app.
func (a *tenant) useSessions(ctx context.Context, victim *tenant, t *tally) error {
	auth, err := url.Parse(a.plane.AuthURL)
	if err != nil {
		return err
	}
	var page []string
	for _, cookie := range victim.browser.Cookies(auth) {
		page = append(page, cookie.Value)
	}
	value := func(cookie string) string { _, v, _ := strings.Cut(cookie, "="); return strings.TrimSuffix(v, ";") }
	name, _, _ := strings.Cut(victim.app.cookie, "=")
	cookies := map[string]string{
		"the attacker's session":                       a.app.cookie,
		"the attacker's session under the name":        name + "=" + value(a.app.cookie),
		"both":                                         a.app.cookie + "; " + name + "=" + value(a.app.cookie),
		"the session of the control plane":             name + "=" + strings.Join(page, "; "+name+"="),
		"the session cut":                              victim.app.cookie[:len(victim.app.cookie)-3],
		"a credential":                                 name + "=" + a.credential,
		"an empty session":                             name + "=",
		"the attacker's session and somebody's prefix": "__Secure-" + strings.TrimPrefix(a.app.cookie, "__Host-"),
	}
	hosts := map[string]string{"of the app": victim.app.host, "of the computer": victim.account.Host}
	fmt.Printf("   cookies %d × hosts %d = %d\n", len(cookies), len(hosts), len(cookies)*len(hosts))
	for where, host := range hosts {
		for what, cookie := range cookies {
			got, err := victim.exchange(ctx, host, "GET /stolen HTTP/1.1\r\nHost: "+host+"\r\nCookie: "+cookie+"\r\nConnection: close\r\n\r\n")
			if err != nil {
				return err
			}
			t.try(1)
			if len(got) > 0 && got[0].status == 200 {
				t.got("%s opens the host %s with %s", a.email, where, what)
			}
		}
	}
	// The right session of one host is nothing at another of the same computer.
	got, err := victim.exchange(ctx, victim.account.Host, "GET / HTTP/1.1\r\nHost: "+victim.account.Host+"\r\nCookie: "+victim.app.cookie+"\r\nConnection: close\r\n\r\n")
	t.try(1)
	if err == nil && len(got) > 0 && got[0].status == 200 {
		t.got("the session of an app opens the computer's own page")
	}
	return err
}

// useCodes takes codes that sign the attacker in to their own app to the victim's.
func (a *tenant) useCodes(ctx context.Context, victim *tenant, t *tally) error {
	for range 4 {
		link, err := a.owner.Open(ctx, "notes")
		if err != nil {
			return err
		}
		moved := strings.Replace(link.URL, a.app.host, victim.app.host, 1)
		if moved == link.URL {
			return fmt.Errorf("the link %s is for another host", link.URL)
		}
		browser := visitor.New(victim.roots)
		page, err := browser.Open(ctx, moved)
		browser.Close()
		if err != nil {
			return err
		}
		t.try(1)
		if strings.HasPrefix(page.Body, "seen ") {
			t.got("%s's link opens %s's app", a.email, victim.email)
		}
	}
	return nil
}

// isUntouched looks whether everything is still there.
func (a *tenant) isUntouched(ctx context.Context, t *tally) error {
	people, err := a.owner.People(ctx)
	if err != nil {
		return err
	}
	if len(people.Members) != 1 {
		t.got("%s's computer has %d people", a.email, len(people.Members))
	}
	got, err := a.exchange(ctx, a.app.host, "GET /still HTTP/1.1\r\nHost: "+a.app.host+"\r\nCookie: "+a.app.cookie+"\r\nConnection: close\r\n\r\n")
	if err == nil && (len(got) == 0 || got[0].status != 200) {
		t.got("%s cannot open their own app any more: %v", a.email, got)
	}
	return err
}

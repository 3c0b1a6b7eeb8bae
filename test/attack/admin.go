//go:build linux

package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/test/authenticator"
	"porchlight/test/rig"
	"porchlight/test/visitor"
)

// adminTried is how often attackAdmin tries something.
const adminTried = 490

const (
	operatorsEmail = "olga@example.net"
	keylessEmail   = "otto@example.net"
	removedEmail   = "rita@example.net"
	endedEmail     = "susi@example.net"
)

// admins is a control plane with operators, and people of every lower role.
type admins struct {
	*keyed
	olga *visitor.Visitor // the operator, who is in
	form string           // the token of her forms
	auth *url.URL
}

// adminGets and adminPosts are what /admin has.
var (
	adminGets = []string{
		"/admin", "/admin/accounts", "/admin/accounts/" + operatorsEmail, "/admin/computers", "/admin/nodes", "/admin/mails", "/admin/clients", "/admin/suspensions",
		"/admin/audit", "/admin/audit/export", "/admin/tokens", "/admin/tokens/nobody", "/admin/find?q=m", "/admin/suspend?kind=account&id=" + ownersEmail, "/admin/api/accounts", "/admin/nothing",
	}
	adminPosts = []string{"/admin/suspend", "/admin/resume", "/admin/signout", "/admin/tokens/end", "/admin/audit/verify", "/admin/api/suspensions"}
)

// attackAdmin comes to /admin as every lower role, with every other session and token there is, and
// from other sites through the operator's own browser.
func attackAdmin(ctx context.Context, s *stage, t *tally) (err error) {
	p, err := s.startPlane(ctx, s.dir+"/plane")
	if err != nil {
		return err
	}
	if p.roots, err = rig.Roots(rig.Authority(p.Data)); err != nil {
		return err
	}
	a := &admins{keyed: &keyed{plane: p}}
	if a.auth, err = url.Parse(p.AuthURL); err != nil {
		return err
	}
	a.host = a.auth.Hostname()
	defer func() {
		if why := recover(); why != nil {
			err = errors.Join(err, fmt.Errorf("%v", why))
		}
	}()
	if err := a.enters(ctx); err != nil {
		return err
	}
	for _, attack := range []func(context.Context, *tally) error{a.lowerRoles, a.otherCookies, a.otherSites, a.tokens, a.goneOperators} {
		if err := attack(ctx, t); err != nil {
			return err
		}
	}
	var ended []control.Suspension
	if err := p.Run(&ended, "suspensions", "--json"); err != nil {
		return err
	}
	for _, one := range ended {
		if one.Name != endedEmail {
			t.got("%s was suspended: %s", one.Name, one.Reason)
		}
	}
	return nil
}

var adminForms = regexp.MustCompile(`name="form" value="([^"]+)"`)

// enters has the operator come in, by the passkey that she has just made.
func (a *admins) enters(ctx context.Context) (err error) {
	if a.olga, err = a.signedIn(ctx, operatorsEmail); err != nil {
		return err
	}
	if a.key, err = a.adds(ctx, a.olga, 0); err != nil {
		return err
	}
	if err := a.Run(nil, "operator", "add", operatorsEmail); err != nil {
		return err
	}
	if status, _, err := a.ask(ctx, a.olga, "/admin", ""); err != nil || status != http.StatusSeeOther {
		return fmt.Errorf("the operator does not come in: HTTP %d, %w", status, err)
	}
	return a.isIn(ctx)
}

// isIn fails where the operator is not in any more, or sees nothing.
func (a *admins) isIn(ctx context.Context) error {
	status, body, err := a.ask(ctx, a.olga, "/admin", "")
	form := adminForms.FindSubmatch(body)
	if err != nil || status != http.StatusOK || form == nil {
		return fmt.Errorf("the operator is not in: HTTP %d, %w", status, err)
	}
	a.form = string(form[1])
	return nil
}

// tries has a browser do all there is at /admin.
func (a *admins) tries(ctx context.Context, t *tally, who string, v *visitor.Visitor) error {
	for _, path := range adminGets {
		status, body, err := a.ask(ctx, v, path, "")
		if err != nil {
			return err
		}
		if t.try(1); status == http.StatusOK || strings.Contains(string(body), operatorsEmail) {
			t.got("%s opens %s: HTTP %d, %.200s", who, path, status, body)
		}
	}
	for _, path := range adminPosts {
		status, body, err := a.ask(ctx, v, path, "form", a.form, "kind", "account", "id", ownersEmail, "reason", who)
		if err != nil {
			return err
		}
		// A redirect leads to sign in: whether anything was done is looked at by its effects.
		if t.try(1); status == http.StatusOK {
			t.got("%s sends %s: HTTP %d, %.200s", who, path, status, body)
		}
	}
	return a.isIn(ctx)
}

// lowerRoles are a stranger, a person who may only visit, an owner with a passkey just used, an
// operator without one, and the operator's own mailbox.
func (a *admins) lowerRoles(ctx context.Context, t *tally) error {
	if err := a.Run(nil, "account", "add", ownersEmail, "--short", "maya"); err != nil {
		return err
	}
	owner, err := a.signedIn(ctx, ownersEmail)
	if err != nil {
		return err
	}
	if _, err := a.adds(ctx, owner, 0); err != nil {
		return err
	}
	member, err := a.signedIn(ctx, strangerEmail)
	if err != nil {
		return err
	}
	if err := a.Run(nil, "operator", "add", keylessEmail); err != nil {
		return err
	}
	keyless, err := a.signedIn(ctx, keylessEmail)
	if err != nil {
		return err
	}
	mailbox := visitor.New(a.roots)
	page, err := mailbox.SignIn(ctx, a.AuthURL+"/account", operatorsEmail, a.mails)
	if err := arrived(page, err); err != nil {
		return err
	}
	for who, v := range map[string]*visitor.Visitor{
		"a stranger": visitor.New(a.roots), "a member": member, "an owner": owner, "an operator without a passkey": keyless, "the operator's mailbox": mailbox,
	} {
		if err := a.tries(ctx, t, who, v); err != nil {
			return err
		}
	}
	return nil
}

// otherCookies are the operator's own cookies in each other's place, and made up.
func (a *admins) otherCookies(ctx context.Context, t *tally) error {
	var session, admin *http.Cookie
	for _, c := range a.olga.Cookies(a.auth) {
		switch {
		case strings.HasPrefix(c.Name, "__Host-porchlight-admin-"):
			admin = c
		case strings.Count(c.Name, "-") == 3: // __Host-porchlight-INSTANCE
			session = c
		}
	}
	if session == nil || admin == nil {
		return errors.New("the operator's browser has not two sessions")
	}
	sealed, _, _ := strings.Cut(a.form, ".")
	inside, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return err
	}
	for what, cookies := range map[string][2]string{ // the account's, and that of /admin
		"the account's session as that of /admin": {"", session.Value},
		"the session of /admin as the account's":  {admin.Value, ""},
		"the sessions in each other's place":      {admin.Value, session.Value},
		"a made-up session":                       {"", strings.Repeat("A", len(admin.Value))},
		"the session cut short":                   {"", admin.Value[:len(admin.Value)-1]},
		"what a form's token seals":               {"", string(inside)},
		"the token of the forms":                  {"", a.form},
		"a made-up session beside a member's":     {strings.Repeat("A", len(session.Value)), strings.Repeat("B", len(admin.Value))},
	} {
		v := visitor.New(a.roots)
		for i, name := range []string{strings.Replace(admin.Name, "-admin-", "-", 1), admin.Name} {
			if cookies[i] != "" {
				v.SetCookies(a.auth, []*http.Cookie{{Name: name, Value: cookies[i], Path: "/", Secure: true}})
			}
		}
		if err := a.tries(ctx, t, what, v); err != nil {
			return err
		}
	}
	return nil
}

// otherSites send forms from the operator's browser, whose cookies go along as if they were not
// SameSite=Strict, and without what the page's own form has.
func (a *admins) otherSites(ctx context.Context, t *tally) error {
	for what, head := range map[string]map[string]string{
		"another site":         {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
		"an app of the owner":  {"Sec-Fetch-Site": "same-site", "Origin": "https://notes.maya.localhost"},
		"an old browser":       {"Origin": "https://evil.example"},
		"plain HTTP":           {"Origin": "http://" + a.auth.Host},
		"a sandboxed frame":    {"Origin": "null"},
		"a form without token": {"Sec-Fetch-Site": "same-origin", "Origin": a.AuthURL, "form": "none"},
		"a token of before":    {"Sec-Fetch-Site": "same-origin", "Origin": a.AuthURL, "form": a.form + "A"},
	} {
		for _, path := range adminPosts {
			form := url.Values{"form": {a.form}, "kind": {"account"}, "id": {ownersEmail}, "reason": {what}}
			switch head["form"] {
			case "":
			case "none":
				form.Del("form")
			default:
				form.Set("form", head["form"])
			}
			status, err := a.sends(ctx, path, head, strings.NewReader(form.Encode()))
			if err != nil {
				return err
			}
			if t.try(1); status < 400 {
				t.got("%s sends %s: HTTP %d", what, path, status)
			}
		}
		if err := a.isIn(ctx); err != nil {
			return err
		}
	}
	return nil
}

// sends posts from the operator's browser.
func (a *admins) sends(ctx context.Context, path string, head map[string]string, body io.Reader) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.AuthURL+path, body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for name, value := range head {
		if name != "form" {
			req.Header.Set(name, value)
		}
	}
	res, err := a.olga.Once(req)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

// tokens come to the pages with a token of the API, and to the API with what is none, may only
// read, or suspend, has gone, is guessed in part, suspends an operator, or comes from a page in a browser.
func (a *admins) tokens(ctx context.Context, t *tally) error {
	var read, gone struct{ ID, Token string }
	if err := a.Run(&read, "token", "add", "a reader", "--json"); err != nil {
		return err
	}
	if err := a.Run(&gone, "token", "add", "a former one", "--scope", "read,suspend", "--json"); err != nil {
		return err
	}
	if err := a.Run(nil, "token", "remove", gone.ID); err != nil {
		return err
	}
	var suspend struct{ ID, Token string }
	if err := a.Run(&suspend, "token", "add", "an abuse desk", "--scope", "suspend", "--json"); err != nil {
		return err
	}
	var device controlapi.Enrolled
	if err := a.Run(&device, "account", "add", ownersEmail, "--short", "maya", "--json"); err != nil {
		return err
	}
	about := `"account","id":"` + ownersEmail
	asks := func(what, method, path, bearer, origin string) error {
		req, err := http.NewRequestWithContext(ctx, method, a.AuthURL+path, strings.NewReader(`{"kind":`+about+`","reason":"a token"}`))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+bearer)
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		v := visitor.New(a.roots)
		defer v.Close()
		res, err := v.Once(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if t.try(1); res.StatusCode < 300 || res.Header.Get("Access-Control-Allow-Origin") != "" {
			t.got("%s asks %s %s: HTTP %d", what, method, path, res.StatusCode)
		}
		return nil
	}
	for _, path := range adminGets {
		if !strings.HasPrefix(path, "/admin/api/") {
			if err := asks("a token", "GET", path, read.Token, ""); err != nil {
				return err
			}
		}
	}
	for what, bearer := range map[string]string{
		"no token": "", "a made-up token": "pla_" + strings.Repeat("a", len(read.Token)-4), "a token that was removed": gone.Token, "a computer": device.Credential,
		"the token cut short": read.Token[:len(read.Token)-1], "a form's token": a.form, "the mark alone": "pla_", "an id alone": "pla_" + read.ID + ".",
		"an id and a made-up secret":    "pla_" + read.ID + "." + strings.Repeat("a", len(read.Token)-len("pla_."+read.ID)),
		"one's id and another's secret": "pla_" + suspend.ID + strings.TrimPrefix(read.Token, "pla_"+read.ID), "a longer secret": read.Token + "a",
	} {
		for _, path := range []string{"/admin/api/accounts", "/admin/api/audit", "/admin/api/suspensions"} {
			if err := asks(what, "GET", path, bearer, ""); err != nil {
				return err
			}
		}
		if err := asks(what, "POST", "/admin/api/suspensions", bearer, ""); err != nil {
			return err
		}
	}
	for _, path := range []string{"/admin/api/suspensions", "/admin/api/suspensions/end"} {
		if err := asks("a token that may read", "POST", path, read.Token, ""); err != nil {
			return err
		}
	}
	for _, path := range []string{"/admin/api/accounts", "/admin/api/audit", "/admin/api/suspensions", "/admin/api/tokens"} {
		if err := asks("a token that may suspend", "GET", path, suspend.Token, ""); err != nil {
			return err
		}
	}
	for _, about = range []string{`"account","id":"` + operatorsEmail, `"address","id":"` + operatorsEmail, `"domain","id":"example.net`} {
		for _, path := range []string{"/admin/api/suspensions", "/admin/api/suspensions/end"} {
			if err := asks("a token that may suspend, of an operator,", "POST", path, suspend.Token, ""); err != nil {
				return err
			}
		}
	}
	for _, origin := range []string{a.AuthURL, "https://evil.example", "null"} {
		if err := asks("a page of "+origin, "GET", "/admin/api/accounts", read.Token, origin); err != nil {
			return err
		}
	}
	return nil
}

// goneOperators were in, and then lost the role, or were suspended.
func (a *admins) goneOperators(ctx context.Context, t *tally) error {
	for email, ends := range map[string][]string{
		removedEmail: {"operator", "remove", removedEmail},
		endedEmail:   {"suspend", "account", endedEmail, "--reason", "a lost laptop"},
	} {
		v, err := a.signedIn(ctx, email)
		if err != nil {
			return err
		}
		var key *authenticator.Passkey
		if key, err = a.adds(ctx, v, 0); err != nil {
			return err
		}
		if err := a.Run(nil, "operator", "add", email); err != nil {
			return err
		}
		if _, _, err := a.ask(ctx, v, "/admin", ""); err != nil {
			return err
		}
		if status, _, err := a.ask(ctx, v, "/admin", ""); err != nil || status != http.StatusOK {
			return fmt.Errorf("%s is not in: HTTP %d, %w", email, status, err)
		}
		if err := a.Run(nil, ends...); err != nil {
			return err
		}
		if err := a.tries(ctx, t, email, v); err != nil {
			return err
		}
		again := visitor.New(a.roots)
		if _, err := a.uses(ctx, again, *key); err != nil {
			return err
		}
		if err := a.tries(ctx, t, email+" anew", again); err != nil {
			return err
		}
	}
	return nil
}

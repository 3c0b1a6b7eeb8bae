//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"porchlight/test/issuer"
	"porchlight/test/rig"
)

// oidcTried is how often attackOIDC tries something.
const oidcTried = 145

// clubbed is a control plane where people sign in with the club, which speaks for example.net,
// or with another provider, which speaks for nobody and is hostile.
type clubbed struct {
	*plane
	club, evil *issuer.Issuer
	t          *tally
	came       int // browsers, each from an address of its own: one network has few tries
}

// openid is a browser, which follows no redirect.
type openid struct {
	*http.Client
	c *clubbed
}

// attackOIDC comes back from OpenID providers with answers that are another's, of another sign-in,
// forged, over, or of somebody else.
func attackOIDC(ctx context.Context, s *stage, t *tally) error {
	c := &clubbed{club: issuer.Start(), evil: issuer.Start(), t: t}
	defer c.club.Close()
	defer c.evil.Close()
	var flags []string
	for name, i := range map[string]*issuer.Issuer{"club": c.club, "evil": c.evil} {
		cfg := i.Config(name, name)
		cfg.SecretFile = "secret"
		if name == "club" {
			cfg.Domains = []string{"example.net"}
		}
		raw, err := json.Marshal(cfg)
		file := filepath.Join(s.dir, name+".json")
		if err := errors.Join(err, os.WriteFile(file, raw, 0o600)); err != nil {
			return err
		}
		flags = append(flags, "--oidc", file)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "secret"), []byte(issuer.Secret), 0o600); err != nil {
		return err
	}
	var err error
	if c.plane, err = s.startPlane(ctx, s.dir+"/plane", flags...); err != nil {
		return err
	}
	if c.roots, err = rig.Roots(rig.Authority(c.Data)); err != nil {
		return err
	}
	for _, email := range []string{ownersEmail, strangerEmail} {
		if err := c.Run(nil, "account", "add", email); err != nil {
			return err
		}
	}
	for _, attack := range []func(context.Context) error{c.bound, c.wayBack, c.claims, c.signatures, c.persons, c.logouts} {
		if err := attack(ctx); err != nil {
			return err
		}
		if in, err := c.comes(ctx, owners(), nil); err != nil || !in {
			return fmt.Errorf("the owner does not sign in any more, so nothing was refused for a reason: %w", err)
		}
	}
	return nil
}

// owners are the claims of the owner at the club.
func owners(change ...any) map[string]any {
	out := map[string]any{"sub": "owner", "email": ownersEmail, "email_verified": true}
	for i := 0; i < len(change); i += 2 {
		if out[change[i].(string)] = change[i+1]; change[i+1] == nil {
			delete(out, change[i].(string))
		}
	}
	return out
}

func (c *clubbed) browser() *openid {
	c.came++
	jar, _ := cookiejar.New(nil) // the error is always nil
	dialer := from(c.came)
	way := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: c.roots}, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		_, port, _ := net.SplitHostPort(addr)
		return dialer.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
	}}
	return &openid{&http.Client{Jar: jar, Transport: way, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, c}
}

// get is where a page leads, or "".
func (b *openid) get(ctx context.Context, address string) (status int, location string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, "", nil // no browser could go there
	}
	res, err := b.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode, res.Header.Get("Location"), nil
}

// begin is where a provider's button leads.
func (b *openid) begin(ctx context.Context, name string) (string, error) {
	status, location, err := b.get(ctx, b.c.AuthURL+"/signin/with/"+name)
	if err == nil && status != http.StatusSeeOther {
		err = fmt.Errorf("a sign-in is not begun: HTTP %d", status)
	}
	return location, err
}

func (b *openid) in(ctx context.Context) (bool, error) {
	status, _, err := b.get(ctx, b.c.AuthURL+"/account")
	return status == http.StatusOK, err
}

// comes has a new browser sign in at the club as somebody, changes where that leads it, and says
// whether it is in.
func (c *clubbed) comes(ctx context.Context, who map[string]any, change func(*openid, *url.URL) error) (bool, error) {
	b := c.browser()
	defer b.CloseIdleConnections()
	address, err := b.begin(ctx, "club")
	if err != nil {
		return false, err
	}
	back, err := url.Parse(c.club.SignIn(address, who))
	if err == nil && change != nil {
		err = change(b, back)
	}
	if err != nil {
		return false, err
	}
	if _, _, err := b.get(ctx, back.String()); err != nil {
		return false, err
	}
	return b.in(ctx)
}

// tries is comes where it must not.
func (c *clubbed) tries(ctx context.Context, what string, who map[string]any, change func(*openid, *url.URL) error) error {
	in, err := c.comes(ctx, who, change)
	if c.t.try(1); in {
		c.t.got("%s", what)
	}
	return err
}

// bound binds the owner's login and a stranger's.
func (c *clubbed) bound(ctx context.Context) error {
	for _, who := range []map[string]any{owners(), owners("sub", "eve", "email", strangerEmail)} {
		if in, err := c.comes(ctx, who, nil); err != nil || !in {
			return fmt.Errorf("a provider signs nobody in: %w", err)
		}
	}
	return nil
}

// wayBack changes the address that a browser comes back to: state, issuer, code.
func (c *clubbed) wayBack(ctx context.Context) error {
	set := func(fields ...string) func(*openid, *url.URL) error {
		return func(_ *openid, back *url.URL) error {
			q := back.Query()
			for i := 0; i < len(fields); i += 2 {
				if q.Set(fields[i], fields[i+1]); fields[i+1] == "" {
					q.Del(fields[i])
				}
			}
			back.RawQuery = q.Encode()
			return nil
		}
	}
	more := func(text string) func(*openid, *url.URL) error {
		return func(_ *openid, back *url.URL) error { back.RawQuery += text; return nil }
	}
	path := func(of string) func(*openid, *url.URL) error {
		return func(_ *openid, back *url.URL) error { back.Path = "/signin/with/" + of + "/back"; return nil }
	}
	// at has another sign-in begin with a provider, in this browser or another, and changes the
	// address by where that one leads.
	at := func(name string, here bool, change func(back, other *url.URL)) func(*openid, *url.URL) error {
		return func(b *openid, back *url.URL) error {
			who := c.browser()
			defer who.CloseIdleConnections()
			if here {
				who = b
			}
			address, err := who.begin(ctx, name)
			if err != nil {
				return err
			}
			other, err := url.Parse(c.club.SignIn(address, owners()))
			if err == nil {
				change(back, other)
			}
			return err
		}
	}
	query := func(names ...string) func(back, other *url.URL) {
		return func(back, other *url.URL) {
			q := back.Query()
			for _, name := range names {
				q.Set(name, other.Query().Get(name))
			}
			back.RawQuery = q.Encode()
		}
	}
	whole := func(back, other *url.URL) { *back = *other }
	for what, change := range map[string]func(*openid, *url.URL) error{
		"no state": set("state", ""), "a state of one letter": set("state", "x"), "a state twice": more("&state=x"), "the state of another browser": at("club", false, query("state")),
		"no issuer": set("iss", ""), "another issuer": set("iss", c.evil.URL), "an issuer with a slash": set("iss", c.club.URL+"/"), "an issuer in capitals": set("iss", strings.ToUpper(c.club.URL)),
		"an issuer twice": more("&iss=" + url.QueryEscape(c.evil.URL)), "an issuer with a semicolon": more(";iss=x"),
		"no code": set("code", ""), "a made-up code": set("code", "x"), "a code twice": more("&code=x"), "an error beside a code": set("error", "server_error"),
		"another's address (mix-up)": path("evil"), "an address of nobody": path("nobody"), "an address in capitals": path("CLUB"),
		"another browser's answer": at("club", false, whole), "the code of another browser's sign-in (injection)": at("club", false, query("code")),
		"code and state of another browser's": at("club", false, query("code", "state")), "the code of a sign-in of this browser that another took the place of": at("club", true, query("code")),
		"an answer of the club to what was begun with another (mix-up)": at("evil", true, whole),
		"the same, at the club's address":                               at("evil", true, func(back, other *url.URL) { *back = *other; back.Path = "/signin/with/club/back" }),
		"the same, with the club's state":                               at("evil", true, func(back, other *url.URL) { query("code", "iss")(back, other) }),
		"no cookie":                                                     func(b *openid, _ *url.URL) error { b.Jar, _ = cookiejar.New(nil); return nil },
		"a cookie of letters": func(b *openid, back *url.URL) error {
			for _, k := range b.Jar.Cookies(back) {
				b.Jar.SetCookies(back, []*http.Cookie{{Name: k.Name, Value: "x" + k.Value, Path: "/", Secure: true}})
			}
			return nil
		},
	} {
		if err := c.tries(ctx, what, owners(), change); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return c.again(ctx)
}

// again sends an answer that was used: by its own browser, by another with its cookies, and
// with a new code for the same state.
func (c *clubbed) again(ctx context.Context) error {
	b, thief := c.browser(), c.browser()
	defer b.CloseIdleConnections()
	defer thief.CloseIdleConnections()
	address, err := b.begin(ctx, "club")
	if err != nil {
		return err
	}
	u, err := url.Parse(c.AuthURL)
	if err != nil {
		return err
	}
	kept := b.Jar.Cookies(u)
	back := c.club.SignIn(address, owners())
	if _, _, err := b.get(ctx, back); err != nil {
		return err
	}
	if in, err := b.in(ctx); err != nil || !in {
		return fmt.Errorf("the first answer signs nobody in: %w", err)
	}
	for what, to := range map[string]string{"an answer that was used": back, "a new code for a state that was used": c.club.SignIn(address, owners())} {
		thief.Jar, _ = cookiejar.New(nil)
		for _, k := range kept {
			thief.Jar.SetCookies(u, []*http.Cookie{{Name: k.Name, Value: k.Value, Path: "/", Secure: true}})
		}
		if _, _, err := thief.get(ctx, to); err != nil {
			return err
		}
		in, err := thief.in(ctx)
		if c.t.try(1); err != nil || in {
			c.t.got("%s: %v", what, err)
		}
	}
	return nil
}

// told has the club's ID tokens changed while one sign-in of the owner's is tried.
func (c *clubbed) told(ctx context.Context, what string, kind string, change func(map[string]any)) error {
	c.club.Change(kind, change)
	defer c.club.Change(kind, nil)
	return c.tries(ctx, what, owners(), nil)
}

// claims are ID tokens for another client, sign-in, moment or nobody.
func (c *clubbed) claims(ctx context.Context) error {
	now := time.Now()
	for what, values := range map[string][]any{
		"nonce": {nil, "", "x", 1, []string{"x"}, strings.Repeat("x", 43)},
		"aud":   {nil, "", "another", []string{}, []string{"another"}, []string{issuer.ClientID, "another"}, strings.ToUpper(issuer.ClientID), issuer.ClientID + " another"},
		"azp":   {"another", "Porchlight"},
		"iss":   {nil, "", c.evil.URL, c.club.URL + "/", strings.ToUpper(c.club.URL), strings.Replace(c.club.URL, "127.0.0.1", "localhost", 1), "https://accounts.google.com"},
		"exp":   {nil, 0, now.Add(-time.Second).Unix(), now.Add(-time.Hour).Unix(), "tomorrow"},
		"iat":   {now.Add(time.Hour).Unix(), now.AddDate(10, 0, 0).Unix()},
		"sub":   {nil, "", 1, strings.Repeat("x", 256), []string{"owner"}},
		// What a provider signs for another purpose is no ID token.
		"events": {map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}},
	} {
		for _, value := range values {
			err := c.told(ctx, fmt.Sprintf("%s %v", what, value), "id_token", func(claims map[string]any) {
				if claims[what] = value; value == nil {
					delete(claims, what)
				}
			})
			if err != nil {
				return err
			}
		}
	}
	// A token of an earlier sign-in, and a logout token, in the place of this one's.
	earlier := ""
	c.club.Change("token", func(answer map[string]any) { earlier, _ = answer["id_token"].(string) })
	if in, err := c.comes(ctx, owners(), nil); err != nil || !in || earlier == "" {
		return fmt.Errorf("the owner is not in: %w", err)
	}
	logout := c.club.Logout(map[string]any{"sub": "owner", "email": ownersEmail, "email_verified": true})
	for what, token := range map[string]any{"the token of an earlier sign-in": earlier, "a logout token": logout, "no token": nil, "a token of two parts": "a.b", "nothing": ""} {
		err := c.told(ctx, what, "token", func(answer map[string]any) {
			if answer["id_token"] = token; token == nil {
				delete(answer, "id_token")
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// persons are the club's words for somebody who is not the owner, or may not be.
func (c *clubbed) persons(ctx context.Context) error {
	for what, who := range map[string]map[string]any{
		"a second sub":                     owners("sub", "thief"),
		"the sub in capitals":              owners("sub", "OWNER"),
		"the sub with a space":             owners("sub", "owner "),
		"the sub with a zero":              owners("sub", "owner\x00"),
		"a changed mail":                   owners("email", strangerEmail),
		"a changed mail of nobody":         owners("email", "new@example.net"),
		"a stranger with the owner's mail": owners("sub", "eve"),
		"an unverified mail":               owners("sub", "u1", "email_verified", false),
		"a mail not said to be verified":   owners("sub", "u2", "email_verified", nil),
		"verified: no":                     owners("sub", "u3", "email_verified", "no"),
		"verified: 1":                      owners("sub", "u4", "email_verified", 1),
		"verified in a list":               owners("sub", "u5", "email_verified", []bool{true}),
		"nobody's mail":                    owners("sub", "u6", "email", "nobody@example.net"),
		"a domain it does not speak for":   owners("sub", "u7", "email", "maya@example.com"),
		"a domain below":                   owners("sub", "u8", "email", "maya@a.example.net"),
		"two addresses":                    owners("sub", "u9", "email", "maya@evil.example,"+ownersEmail),
		"an address in another":            owners("sub", "u10", "email", "\"maya@example.net\"@evil.example"),
		"addresses in a list":              owners("sub", "u11", "email", []string{ownersEmail}),
		"a mail with a line of its own":    owners("sub", "u12", "email", ownersEmail+"\r\nBcc: eve@evil.example"),
		"a mail of very many letters":      owners("sub", "u13", "email", strings.Repeat("x", 1<<16)+"@example.net"),
	} {
		if err := c.tries(ctx, what, who, nil); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	// Another provider, which speaks for nobody, and an address that is another's.
	b := c.browser()
	defer b.CloseIdleConnections()
	address, err := b.begin(ctx, "evil")
	if err != nil {
		return err
	}
	if _, _, err := b.get(ctx, c.evil.SignIn(address, owners())); err != nil {
		return err
	}
	in, err := b.in(ctx)
	if c.t.try(1); err != nil || in {
		c.t.got("a provider that speaks for nobody: %v", err)
	}
	c.club.Change("userinfo", func(info map[string]any) { maps.Copy(info, owners("sub", "another")) })
	defer c.club.Change("userinfo", nil)
	return c.tries(ctx, "an address that is another's", map[string]any{"sub": "eve2"}, nil)
}

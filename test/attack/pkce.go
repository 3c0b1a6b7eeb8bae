//go:build linux

package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
)

// attackPKCE asks for codes, and for tokens of codes, with less than PKCE.
func attackPKCE(ctx context.Context, s *stage, t *tally) error {
	c, err := s.startComputer(ctx, s.dir+"/data")
	if err != nil {
		return err
	}
	if _, err := c.publish(ctx, "notes", "Notes", 9); err != nil {
		return err
	}
	r, err := c.newRemote(ctx, s, "Pocket Notes", callback)
	if err != nil {
		return err
	}
	defer r.browser.Close()
	verifier := rand.Text() + rand.Text()
	asks := map[string]func(url.Values){
		"no challenge":            func(q url.Values) { q.Del("code_challenge"); q.Del("code_challenge_method") },
		"no method":               func(q url.Values) { q.Del("code_challenge_method") },
		"plain":                   func(q url.Values) { q.Set("code_challenge_method", "plain"); q.Set("code_challenge", verifier) },
		"s256 in small letters":   func(q url.Values) { q.Set("code_challenge_method", "s256") },
		"two methods":             func(q url.Values) { q.Add("code_challenge_method", "plain") },
		"two challenges":          func(q url.Values) { q.Add("code_challenge", challengeOf("x")) },
		"an empty challenge":      func(q url.Values) { q.Set("code_challenge", "") },
		"a short challenge":       func(q url.Values) { q.Set("code_challenge", "abc") },
		"a challenge with end":    func(q url.Values) { q.Set("code_challenge", q.Get("code_challenge")+"=") },
		"a token at once":         func(q url.Values) { q.Set("response_type", "token") },
		"a code and a token":      func(q url.Values) { q.Set("response_type", "code token") },
		"another scope":           func(q url.Values) { q.Set("scope", "owner") },
		"a client without a name": func(q url.Values) { q.Set("client_id", "") },
	}
	for what, change := range asks {
		q := r.query(verifier)
		change(q)
		page, err := r.ask(ctx, q.Encode())
		if err != nil {
			return err
		}
		t.try(1)
		if page.Status == 200 || strings.Contains(page.Header.Get("Location"), "code=") {
			t.got("asking with %s: HTTP %d", what, page.Status)
		}
	}
	other, err := c.newRemote(ctx, s, "Another", callback)
	if err != nil {
		return err
	}
	defer other.browser.Close()
	exchanges := map[string]func(url.Values){
		"no verifier":               func(f url.Values) { f.Del("code_verifier") },
		"an empty verifier":         func(f url.Values) { f.Set("code_verifier", "") },
		"another verifier":          func(f url.Values) { f.Set("code_verifier", rand.Text()+rand.Text()) },
		"the challenge as verifier": func(f url.Values) { f.Set("code_verifier", challengeOf(f.Get("code_verifier"))) },
		"two verifiers":             func(f url.Values) { f.Add("code_verifier", "x") },
		"plain at the end":          func(f url.Values) { f.Set("code_challenge_method", "plain"); f.Del("code_verifier") },
		"another redirect URI":      func(f url.Values) { f.Set("redirect_uri", callback+"/x") },
		"no redirect URI":           func(f url.Values) { f.Del("redirect_uri") },
		"another client":            func(f url.Values) { f.Set("client_id", other.id); f.Set("client_secret", other.secret) },
		"another client's secret":   func(f url.Values) { f.Set("client_secret", other.secret) },
		"no secret":                 func(f url.Values) { f.Del("client_secret") },
		"the code as refresh token": func(f url.Values) { f.Set("grant_type", "refresh_token"); f.Set("refresh_token", f.Get("code")) },
		"another grant type":        func(f url.Values) { f.Set("grant_type", "client_credentials") },
	}
	fmt.Printf("   authorization requests %d + token requests %d, each with a code of its own\n", len(asks), len(exchanges))
	for what, change := range exchanges {
		if err := r.allow(ctx); err != nil {
			return err
		}
		form := r.exchange()
		change(form)
		_, got, err := r.token(ctx, form)
		if err != nil {
			return err
		}
		t.try(1)
		if got.Access != "" {
			t.got("exchanging a code with %s gives a token", what)
		}
	}
	return nil
}

//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
)

// forged are names by which apps learn who is there, from us or from others.
var forged = []string{
	"X-Service-User", "X-Service-Email", "X-Service-Name", "X-Service-App", "X-Service-Role", "X-Service-Token", "X-Service-Groups",
	"X-Forwarded-User", "X-Forwarded-Email", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Forwarded",
	"Remote-User", "X-Remote-User", "X-WebAuth-User", "X-Auth-Request-User", "X-Authentik-Username",
	"Cf-Access-Authenticated-User-Email", "Tailscale-User-Login", "Proxy", "X-Engine-Capability", "X-Owner-Secret",
}

// mark is in every forged value.
const mark = "forged-by-a-visitor"

// spelling is a way to write a field so that some program reads it as name.
type spelling struct {
	what string
	name func(string) string // nil: as it is
	line string              // NAME and VALUE stand for themselves; empty: NAME: VALUE
}

func with(old, new string) func(string) string {
	return func(name string) string { return strings.ReplaceAll(name, old, new) }
}

func alternating(name string) string {
	b := []byte(strings.ToLower(name))
	for i := 0; i < len(b); i += 2 {
		b[i] = strings.ToUpper(string(b[i]))[0]
	}
	return string(b)
}

var spellings = []spelling{
	{what: "as it is"},
	{what: "small", name: strings.ToLower},
	{what: "capital", name: strings.ToUpper},
	{what: "alternating", name: alternating},
	{what: "underscores", name: with("-", "_")},
	{what: "one underscore", name: func(n string) string { return strings.Replace(n, "-", "_", 1) }},
	{what: "dots", name: with("-", ".")},
	{what: "tildes", name: with("-", "~")},
	{what: "space before the colon", line: "NAME : VALUE\r\n"},
	{what: "tab before the colon", line: "NAME\t: VALUE\r\n"},
	{what: "space before the name", line: " NAME: VALUE\r\n"},
	{what: "NUL behind the name", line: "NAME\x00: VALUE\r\n"},
	{what: "hyphens of another script", name: with("-", "\u2010")},
	{what: "twice", line: "NAME: VALUE\r\nNAME: VALUE\r\n"},
	{what: "empty, then forged", line: "NAME:\r\nNAME: VALUE\r\n"},
	{what: "of 4 KiB", line: "NAME: VALUE" + strings.Repeat("x", 4<<10) + "\r\n"},
	{what: "folded", line: "NAME:\r\n VALUE\r\n"},
	{what: "behind a bare LF", line: "X-Honest: yes\nNAME: VALUE\r\n"},
}

func (s spelling) write(name string) (spelled, lines string) {
	if s.name != nil {
		name = s.name(name)
	}
	line := s.line
	if line == "" {
		line = "NAME: VALUE\r\n"
	}
	return name, strings.NewReplacer("NAME", name, "VALUE", mark).Replace(line)
}

var places = []string{"in the head", "named in Connection", "in a declared trailer", "in a trailer nobody declared"}

// forgery is a request with one forged field, spelled and placed.
func forgery(host, cookie, target, name string, how spelling, where int) string {
	spelled, lines := how.write(name)
	head := " " + target + " HTTP/1.1\r\nHost: " + host + "\r\nCookie: " + cookie + "\r\nX-Kept: yes\r\n"
	const chunked = "Transfer-Encoding: chunked\r\nConnection: close\r\n"
	origin := "Origin: https://" + host + "\r\n"
	switch where {
	case 0:
		return "GET" + head + lines + "Connection: close\r\n\r\n"
	case 1:
		return "GET" + head + lines + "Connection: close, " + spelled + "\r\nConnection: X-Service-User, X-Service-Role\r\n\r\n"
	case 2:
		return "POST" + head + origin + chunked + "Trailer: X-Late, " + spelled + "\r\n\r\n5\r\nhello\r\n0\r\nX-Late: yes\r\n" + lines + "\r\n"
	default:
		return "POST" + head + origin + chunked + "\r\n5\r\nhello\r\n0\r\n" + lines + "\r\n"
	}
}

// attackHeaders has a member claim to be somebody else over HTTP/1.1. Whatever
// the spelling, the app is told who it is by us, and never sees the forgery.
func attackHeaders(ctx context.Context, s *stage, t *tally) error {
	on, err := s.startGround(ctx)
	if err != nil {
		return err
	}
	cases := grid{}.axis("names", len(forged)).axis("spellings", len(spellings)).axis("places", len(places)).
		axis("back ends", len(on.backends)).pick(s.quick, 400)
	err = atOnce(len(cases), 8, func(i int) error {
		picked := cases[i]
		target := fmt.Sprintf("/h/%d", i)
		what := fmt.Sprintf("%s %s %s", forged[picked[0]], spellings[picked[1]].what, places[picked[2]])
		return on.attack(picked[3], target, what, t, func(b *backend) ([]answer, error) {
			return on.provoke(ctx, b.host, forgery(b.host, b.cookie, target, forged[picked[0]], spellings[picked[1]], picked[2]))
		})
	})
	if err != nil {
		return err
	}
	return on.judgeAll(t)
}

// attack carries out one attack on an app and notes what came back.
func (on *ground) attack(app int, target, what string, t *tally, send func(*backend) ([]answer, error)) error {
	tr := on.trials[app]
	on.mu.Lock()
	tr.what[target] = what
	on.mu.Unlock()
	got, err := send(on.backends[app])
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	t.try(1)
	on.mu.Lock()
	defer on.mu.Unlock()
	tr.answered(target, got, t)
	return nil
}

// answered notes what came back for one request.
func (tr *trial) answered(target string, got []answer, t *tally) {
	tr.tried++
	switch {
	case len(got) > 1:
		t.got("%s: %d answers to one request", tr.describe(target), len(got))
	case len(got) == 1 && got[0].status == 200:
		tr.accepted[target] = true
		if got[0].body != "seen "+target+"\n" {
			t.got("%s: answered with %.60q", tr.describe(target), got[0].body)
		}
	}
}

// judgeAll ends the back ends and judges every one. Some attacks must have come
// as far as the app, or nothing was shown.
func (on *ground) judgeAll(t *tally) error {
	for i, b := range on.backends {
		tr := on.trials[i]
		if err := tr.judge(b, t); err != nil {
			return err
		}
		if len(tr.accepted) == 0 {
			return fmt.Errorf("the app in %s saw none of the requests", b.name)
		}
		fmt.Printf("   %s: %d attacks, %d requests came to the app\n", b.name, tr.tried, len(tr.accepted))
	}
	return nil
}

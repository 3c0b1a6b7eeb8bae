//go:build linux

package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// What a client has registered, and how an attacker changes it so that some
// program still takes it for the same.
var (
	registered = []string{"https://notes.example/cb", "http://127.0.0.1:7777/cb", "http://localhost:7777/cb?x=1", "com.example.notes:/cb"}
	ofPublic   = []string{"http://127.0.0.1:7777/cb", "http://[::1]:7777/cb", "cursor://notes/cb"}

	changesOfURI = []struct {
		what string
		do   func(string) string
	}{
		{"another host", with("notes", "evil")},
		{"a host below", with("://", "://evil.")},
		{"a host that begins alike", with("/cb", ".evil.example/cb")},
		{"a user", with("://", "://evil.example@")},
		{"a user behind the host", with("/cb", "@evil.example/cb")},
		{"a backslash", with("/cb", "\\@evil.example/cb")},
		{"a path below", func(u string) string { return u + "/x" }},
		{"a slash at the end", func(u string) string { return u + "/" }},
		{"dots", with("/cb", "/cb/../evil")},
		{"dots to the same", with("/cb", "/x/../cb")},
		{"dots as %2e", with("/cb", "/%2e%2e/cb")},
		{"two slashes", with("/cb", "//cb")},
		{"a query", func(u string) string { return u + "?next=https://evil.example" }},
		{"a fragment", func(u string) string { return u + "#x" }},
		{"an empty fragment", func(u string) string { return u + "#" }},
		{"capitals in the path", with("/cb", "/CB")},
		{"capitals in the scheme", func(u string) string { return strings.ToUpper(u[:3]) + u[3:] }},
		{"capitals in the host", with("notes.", "NOTES.")},
		{"the letters escaped", with("cb", "%63b")},
		{"another port", with("7777", "7778")},
		{"a port", with("example/", "example:444/")},
		{"the usual port", with("example/", "example:443/")},
		{"another scheme", with("http", "ftp")},
		{"no TLS", with("https", "http")},
		{"TLS", with("http:", "https:")},
		{"another loopback address", with("127.0.0.1", "127.0.0.2")},
		{"loopback by name", with("127.0.0.1", "localhost")},
		{"loopback by address", with("localhost", "127.0.0.1")},
		{"IPv6", with("127.0.0.1", "[::1]")},
		{"a dot behind the host", with("example/", "example./")},
		{"a NUL", func(u string) string { return u + "\x00" }},
		{"a line", func(u string) string { return u + "\r\nLocation: https://evil.example" }},
		{"a space before", func(u string) string { return " " + u }},
		{"a space behind", func(u string) string { return u + " " }},
		{"a tab inside", with("/cb", "/\tcb")},
		{"no path", with("/cb", "")},
		{"javascript", func(string) string { return "javascript:alert(1)" }},
		{"data", func(string) string { return "data:text/html,x" }},
		{"no scheme", func(u string) string { return strings.TrimPrefix(u, "https:") }},
		{"a letter of another script", with("notes", "n\u043etes")},
		{"a star", with("cb", "*")},
		{"out of band", func(string) string { return "urn:ietf:wg:oauth:2.0:oob" }},
		{"empty", func(string) string { return "" }},
	}
)

// attackRedirects asks for consent with redirect URIs that are not quite those of
// the client, and registers clients with URIs that lead elsewhere than they say.
func attackRedirects(ctx context.Context, s *stage, t *tally) error {
	c, err := s.startComputer(ctx, s.dir+"/data")
	if err != nil {
		return err
	}
	if _, err := c.publish(ctx, "notes", "Notes", 9); err != nil {
		return err
	}
	tried := map[string]bool{}
	r, err := c.newRemote(ctx, s, "Client", registered[0])
	if err != nil {
		return err
	}
	for i, honest := range slices.Concat(registered, ofPublic) {
		public := i >= len(registered)
		if err := c.register(r, honest, public); err != nil {
			return err
		}
		if page, err := r.ask(ctx, r.query("x").Encode()); err != nil || page.Status != 200 {
			return fmt.Errorf("%s of its own is refused: %+v, %v", honest, page, err)
		}
		for _, change := range changesOfURI {
			uri := change.do(honest)
			key := fmt.Sprint(public, honest, uri)
			if uri == honest || tried[key] || public && change.what == "another port" {
				continue
			}
			tried[key] = true
			for _, twice := range []bool{false, true} {
				q := r.query("x")
				q["redirect_uri"] = []string{uri}
				if twice {
					q["redirect_uri"] = []string{honest, uri}
				}
				page, err := r.ask(ctx, q.Encode())
				if err != nil {
					return err
				}
				t.try(1)
				if to, _ := url.Parse(page.Header.Get("Location")); page.Status == 200 || to != nil && to.IsAbs() {
					t.got("%s for %s (%s, beside the right one: %v): HTTP %d to %q", uri, honest, change.what, twice, page.Status, to)
				}
			}
		}
	}
	r.browser.Close()
	fmt.Printf("   URIs %d, changed in %d ways (%d differ) × alone, beside the right one = %d\n", len(registered)+len(ofPublic), len(changesOfURI), len(tried), 2*len(tried))
	return c.registerOdd(ctx, s, t)
}

// register gives the browser another client.
func (c *computer) register(r *remote, uri string, public bool) error {
	var made struct{ ClientID, ClientSecret string }
	err := c.Node().Run(&made, "client", "add", "--name", "Client", "--redirect-uri", uri, fmt.Sprintf("--public=%t", public))
	r.id, r.secret, r.back = made.ClientID, made.ClientSecret, uri
	return err
}

// registerOdd adds clients whose redirect URIs browsers read otherwise than they
// look.
func (c *computer) registerOdd(ctx context.Context, s *stage, t *tally) error {
	odd := []string{
		"https://host.example/../cb", "https://host.example/a/%2e%2e/cb", "https://host.example:99999/cb", "https://host.example:0/cb", "http://host.example/cb",
		"https://a@host.example/cb", "https://host.example/cb#x", "https://host.example/*", "https://*.example/cb", "javascript:alert(1)",
		"https://host.example\\@evil.example/cb", "https://host.example/\tcb", " https://host.example/cb", "data:text/html,x", "file:///etc/passwd",
		"vbscript:/x", "view-source:/x", "chrome://settings", "blob:/x", "about:/blank", "ws://host.example/", "http://[::1%25lo]/cb", "http://[::1]:0/cb", "localhost:7777/cb",
		"//host.example/cb", "https:///cb", "https:host.example/cb", "http://127.0.0.1.evil.example/cb", "http://localhost.evil.example/cb", "https://h\u043est.example/cb",
	}
	fmt.Printf("   clients with odd URIs %d\n", len(odd))
	var r remote
	for _, uri := range odd {
		for _, public := range []bool{false, true} {
			t.try(1)
			if c.register(&r, uri, public) == nil {
				t.got("a client is registered with %q (public: %t)", uri, public)
			}
		}
	}
	return ctx.Err()
}

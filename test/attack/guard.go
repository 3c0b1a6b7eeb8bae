//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// What a web page can have a browser on this computer send, and what a program
// sends. Empty leaves the line out; ADDR and PORT are the API's.
var (
	guardHosts = []string{
		"ADDR", "localhost:PORT", // a program's
		"", "127.0.0.1", "localhost", "evil.example", "evil.example:PORT", "127.0.0.1:1", "localhost.:PORT", "x.localhost:PORT", "127.1:PORT",
		"0.0.0.0:PORT", "[::1]:PORT", "127.0.0.2:PORT", "2130706433:PORT", "ADDR, evil.example", "ADDR@evil.example",
	}
	programHosts = 2 // the first of guardHosts

	guardOrigins = []string{"", "https://evil.example", "null", "http://ADDR", "http://localhost:PORT", "EMPTY"}
	guardSites   = []string{"", "none", "cross-site", "same-site", "same-origin", "EMPTY", "nonsense"}
	programSites = 2 // the first of guardSites

	// Each asks for the name N.
	guardRequests = []struct {
		what, method, path, fields, body string
		program                          bool
		status                           int // for a program
	}{
		{"publish, JSON", "POST", "/publish", "Content-Type: application/json\r\n", `{"name":"N","label":"N","localPort":9}`, true, 202},
		{"publish, JSON in UTF-8", "POST", "/publish", "Content-Type: application/json; charset=utf-8\r\n", `{"name":"N","label":"N","localPort":9}`, true, 202},
		{"publish, plain text", "POST", "/publish", "Content-Type: text/plain\r\n", `{"name":"N","label":"N","localPort":9}`, false, 0},
		{"publish, a form", "POST", "/publish", "Content-Type: application/x-www-form-urlencoded\r\n", `{"name":"N","label":"N","localPort":9}`, false, 0},
		{"publish, multipart", "POST", "/publish", "Content-Type: multipart/form-data; boundary=x\r\n", `{"name":"N","label":"N","localPort":9}`, false, 0},
		{"publish, no type", "POST", "/publish", "", `{"name":"N","label":"N","localPort":9}`, false, 0},
		{"publish, upgrade to a WebSocket", "POST", "/publish", "Content-Type: application/json\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n", `{"name":"N","label":"N","localPort":9}`, false, 0},
		{"publish, compressed", "POST", "/publish", "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", `{"name":"N","label":"N","localPort":9}`, false, 0},
		{"publish by a method override", "GET", "/publish?_method=POST", "X-HTTP-Method-Override: POST\r\nContent-Type: application/json\r\n", `{"name":"N","label":"N","localPort":9}`, false, 0},
		{"status", "GET", "/status", "", "", true, 200},
		{"preflight", "OPTIONS", "/publish", "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Private-Network: true\r\n", "", false, 0},
		{"WebSocket", "GET", "/status", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n", "", false, 0},
		{"the owner's part", "GET", "/owner/state", "", "", false, 0},
		{"TRACE", "TRACE", "/status", "", "", false, 0},
	}
)

// attackGuard sends the loopback API what web pages can make a browser send.
// Only what a program sends may do anything, and no answer may be readable.
func attackGuard(ctx context.Context, s *stage, t *tally) error {
	c, err := s.startComputer(ctx, s.dir+"/data")
	if err != nil {
		return err
	}
	cases := grid{}.axis("hosts", len(guardHosts)).axis("origins", len(guardOrigins)).axis("Sec-Fetch-Site", len(guardSites)).
		axis("requests", len(guardRequests)).pick(s.quick, 1500)
	for host := range programHosts {
		for site := range programSites {
			cases = append(cases, []int{host, 0, site, 0}, []int{host, 0, site, 9})
		}
	}
	passed := 0
	for i, picked := range cases {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		req := guardRequests[picked[3]]
		// A page gives no other reason to be refused than itself: one name for all.
		program := picked[0] < programHosts && picked[1] == 0 && picked[2] < programSites && req.program
		what := fmt.Sprintf("%s, Host %q, Origin %q, Sec-Fetch-Site %q", req.what, guardHosts[picked[0]], guardOrigins[picked[1]], guardSites[picked[2]])
		name := "page"
		if program {
			name = "program"
		}
		status, head, err := c.knock(ctx, guardBytes(c.Running.API, name, picked))
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		t.try(1)
		switch {
		case program && status != req.status:
			t.got("case %d, %s: a program gets %d", i, what, status)
		case !program && status < 400:
			t.got("case %d, %s: %d", i, what, status)
		case head.Get("Access-Control-Allow-Origin") != "" || head.Get("Access-Control-Allow-Private-Network") != "":
			t.got("case %d, %s: a page may read the answer", i, what)
		}
		if program {
			passed++
		}
	}
	fmt.Printf("   %d of these are what a program sends\n", passed)
	state, err := c.owner.State(ctx)
	if err != nil {
		return err
	}
	for _, app := range state.Apps {
		if app.Name == "page" {
			t.got("a web page asked for an address")
		}
	}
	return nil
}

func guardBytes(api, name string, picked []int) string {
	_, port, _ := net.SplitHostPort(api)
	req := guardRequests[picked[3]]
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", req.method, req.path)
	for _, field := range [][2]string{{"Host", guardHosts[picked[0]]}, {"Origin", guardOrigins[picked[1]]}, {"Sec-Fetch-Site", guardSites[picked[2]]}} {
		if field[1] != "" {
			fmt.Fprintf(&b, "%s: %s\r\n", field[0], strings.TrimPrefix(field[1], "EMPTY"))
		}
	}
	body := strings.ReplaceAll(req.body, `"N"`, `"`+name+`"`)
	if body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	if !strings.Contains(req.fields, "Connection:") {
		b.WriteString("Connection: close\r\n")
	}
	text := b.String() + req.fields + "\r\n" + body
	return strings.NewReplacer("ADDR", api, "PORT", port).Replace(text)
}

// knock sends bytes to the loopback API and reads one answer.
func (c *computer) knock(ctx context.Context, request string) (int, http.Header, error) {
	return knockAt(ctx, "tcp", c.Running.API, request)
}

func knockAt(ctx context.Context, network, address, request string) (int, http.Header, error) {
	dialer := &net.Dialer{Timeout: patience}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return 0, nil, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, request); err != nil {
		return 0, nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, nil, err
	}
	resp.Body.Close()
	return resp.StatusCode, resp.Header, nil
}

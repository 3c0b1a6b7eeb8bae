package localapi

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// TestW7_Tiers sends every row of the table from every tier below its own.
// Weakness: a check inside a handler is forgotten in one of them. Attack: call
// the owner's routes as any other program can. Checked: all refuse, and none
// did anything; with the secret all are there.
func TestW7_Tiers(t *testing.T) {
	t.Parallel()
	r := start(t)
	programs.Got(r.open().Publish(t.Context(), agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: 8000}))(t)
	before := programs.Got(r.owner().State(t.Context()))(t)
	wrong := strings.Repeat("A", len(r.secret))
	rows := 0
	for _, rt := range routes {
		if rt.tier == tierOpen {
			continue
		}
		rows++
		path := strings.ReplaceAll(rt.path, "{name}", "notes")
		for attack, q := range map[string]request{
			"open tier":                  {},
			"open tier with the secret":  {secret: r.secret},
			"socket without a secret":    {socket: true},
			"socket with another secret": {socket: true, secret: wrong},
			"socket with two secrets":    {socket: true, header: http.Header{"X-Owner-Secret": {wrong, r.secret}}},
			"web page on the socket":     {socket: true, secret: r.secret, header: http.Header{"Origin": {"http://localhost"}}},
		} {
			q.method, q.path = rt.method, path
			got := r.send(t, q)
			if got.status != http.StatusForbidden {
				t.Errorf("%s %s, %s: %d %s", rt.method, path, attack, got.status, got.body)
				continue
			}
			got.sentence(t)
		}
	}
	if rows < 10 {
		t.Fatalf("only %d rows above the open tier were tried", rows)
	}
	after := programs.Got(r.owner().State(t.Context()))(t)
	if after.Seq != before.Seq {
		t.Errorf("a refused request changed something: %+v", after)
	}
	r.wants(t, request{method: "GET", path: "/status", socket: true}, http.StatusOK, "")
	for _, path := range []string{"/owner/account", "/owner/outbox"} {
		r.wants(t, r.byOwner("GET", path, ""), http.StatusOK, "")
	}
	for _, path := range []string{"/owner/apps/notes/approve", "/owner/open", "/owner/apps/notes/open", "/owner/apps/notes/unmute"} {
		r.wants(t, r.byOwner("POST", path, ""), http.StatusOK, "")
	}
}

// TestNoOwnerSecret is the desktop behind a locked keychain: everything open
// works, and an empty hash is no secret that an empty header could match.
func TestNoOwnerSecret(t *testing.T) {
	t.Parallel()
	r := startWith(t, func(r *rig) { r.hash = nil })
	for _, header := range []http.Header{nil, {"X-Owner-Secret": {""}}, {"X-Owner-Secret": {r.secret}}} {
		r.wants(t, request{method: "GET", path: "/owner/state", socket: true, header: header}, http.StatusForbidden, "no owner secret yet")
	}
	if _, err := r.open().Status(t.Context()); err != nil {
		t.Errorf("the open tier: %v", err)
	}
}

// TestGuard is what web pages and confused programs send. Weakness: a browser on
// this computer reaches 127.0.0.1 for any page, by its own name (DNS rebinding)
// or blindly (CSRF). Checked: refused before any route, by every listener.
func TestGuard(t *testing.T) {
	t.Parallel()
	r := start(t)
	_, port, err := net.SplitHostPort(r.addr)
	programs.Must(t, err)
	const body = `{"name":"notes","label":"Notes","localPort":8000}`
	h := func(name, value string) http.Header { return http.Header{name: {value}} }
	for what, tt := range map[string]struct {
		request request
		status  int
	}{
		"Host of a page":                   {request{host: "evil.example:" + port}, 403},
		"Host without port":                {request{host: "127.0.0.1"}, 403},
		"Host with another port":           {request{host: "127.0.0.1:1"}, 403},
		"Host that looks alike":            {request{host: "localhost." + ":" + port}, 403},
		"Host below localhost":             {request{host: "x.localhost:" + port}, 403},
		"Host in another notation":         {request{host: "127.1:" + port}, 403},
		"Host of the other loopback":       {request{host: "[::1]:" + port}, 403},
		"Host localhost":                   {request{host: "localhost:" + port}, 202},
		"Host LOCALHOST":                   {request{host: "LocalHost:" + port}, 202},
		"Origin of a page":                 {request{header: h("Origin", "https://evil.example")}, 403},
		"Origin null":                      {request{header: h("Origin", "null")}, 403},
		"Origin of our own":                {request{header: h("Origin", "http://"+r.addr)}, 403},
		"Origin empty":                     {request{header: h("Origin", "")}, 403},
		"Sec-Fetch-Site cross-site":        {request{header: h("Sec-Fetch-Site", "cross-site")}, 403},
		"Sec-Fetch-Site same-origin":       {request{header: h("Sec-Fetch-Site", "same-origin")}, 403},
		"Sec-Fetch-Site twice":             {request{header: http.Header{"Sec-Fetch-Site": {"none", "same-site"}}}, 403},
		"Sec-Fetch-Site none":              {request{header: h("Sec-Fetch-Site", "none")}, 202},
		"WebSocket":                        {request{header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}}, 403},
		"WebSocket among others":           {request{header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {"h2c, WebSocket/13"}}}, 403},
		"WebSocket in a second line":       {request{header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {"h2c", "websocket"}}}, 403},
		"an upgrade not wanted":            {request{header: http.Header{"Connection": {"Upgrade, HTTP2-Settings"}, "Upgrade": {"h2c"}, "Http2-Settings": {"AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA"}}}, 202},
		"a form":                           {request{header: h("Content-Type", "application/x-www-form-urlencoded")}, 415},
		"plain text, needing no preflight": {request{header: h("Content-Type", "text/plain")}, 415},
		"no Content-Type":                  {request{header: http.Header{"Content-Type": nil}}, 415},
		"JSON by another name":             {request{header: h("Content-Type", "application/json-patch+json")}, 415},
		"JSON in another charset":          {request{header: h("Content-Type", "application/json; charset=utf-16")}, 415},
		"JSON that says UTF-8":             {request{header: h("Content-Type", "application/json; charset=UTF-8")}, 202},
		"compressed":                       {request{header: h("Content-Encoding", "gzip")}, 415},
	} {
		q := tt.request
		q.method, q.path, q.body = "POST", "/publish", body
		got := r.send(t, q)
		if got.status != tt.status {
			t.Errorf("%s: %d %s, want %d", what, got.status, got.body, tt.status)
		}
		if tt.status != 202 {
			got.sentence(t)
		}
		if got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: a page may read the answer", what)
		}
	}
	r.wants(t, request{method: "GET", path: "/status", socket: true, host: r.addr}, 403, "") // Host of the open tier on the socket
}

func TestUnknownAddresses(t *testing.T) {
	t.Parallel()
	r := start(t)
	for q, want := range map[struct{ method, path string }]struct {
		status int
		allow  string
	}{
		{"GET", "/"}:                    {404, ""},
		{"GET", "/nothing"}:             {404, ""},
		{"GET", "/publish/"}:            {404, ""},
		{"GET", "/publish/a/b"}:         {404, ""},
		{"GET", "//status"}:             {404, ""},
		{"GET", "/x/../status"}:         {404, ""},
		{"GET", "/status/"}:             {404, ""},
		{"GET", "/publish"}:             {405, "POST"},
		{"PUT", "/publish/notes"}:       {405, "GET, HEAD, DELETE"},
		{"OPTIONS", "/publish"}:         {405, "POST"},
		{"DELETE", "/status"}:           {405, "GET, HEAD"},
		{"GET", "/owner/apps/x/revoke"}: {405, "POST"},
	} {
		got := r.send(t, request{method: q.method, path: q.path})
		if got.status != want.status || got.header.Get("Allow") != want.allow {
			t.Errorf("%s %s: %d, Allow %q; want %d, %q", q.method, q.path, got.status, got.header.Get("Allow"), want.status, want.allow)
		}
		got.sentence(t)
	}
}

// A probe that asks by HEAD finds what GET would answer, without its body.
func TestHead(t *testing.T) {
	t.Parallel()
	r := start(t)
	for path, status := range map[string]int{"/status": 200, "/engine/info": 200, "/publish/notes": 404, "/people": 403, "/owner/state": 403} {
		if got := r.send(t, request{method: "HEAD", path: path}); got.status != status || got.body != "" || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %q %v, want %d", path, got.status, got.body, got.header, status)
		}
	}
}

// TestRawRequests sends what no HTTP library would.
func TestRawRequests(t *testing.T) {
	t.Parallel()
	r := start(t)
	host := "Host: " + r.addr + "\r\n"
	for what, tt := range map[string]struct{ request, want string }{
		"HTTP/1.0 without Host":       {"GET /status HTTP/1.0\r\n\r\n", "HTTP/1.0 200"},
		"HTTP/1.0 of a page":          {"GET /status HTTP/1.0\r\nHost: evil.example\r\n\r\n", "HTTP/1.0 403"},
		"no Host":                     {"GET /status HTTP/1.1\r\n\r\n", "HTTP/1.1 400"},
		"an empty Host":               {"GET /status HTTP/1.1\r\nHost:\r\n\r\n", "HTTP/1.1 403"},
		"two Hosts":                   {"GET /status HTTP/1.1\r\n" + host + host + "\r\n", "HTTP/1.1 400"},
		"absolute target elsewhere":   {"GET http://evil.example/status HTTP/1.1\r\n" + host + "\r\n", "HTTP/1.1 403"},
		"CONNECT":                     {"CONNECT " + r.addr + " HTTP/1.1\r\n" + host + "\r\n", "HTTP/1.1 403"},
		"OPTIONS *":                   {"OPTIONS * HTTP/1.1\r\n" + host + "\r\n", "HTTP/1.1 404"},
		"headers without end":         {"GET /status HTTP/1.1\r\n" + host + "X: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", "HTTP/1.1 431"},
		"length and chunks":           {"POST /publish HTTP/1.1\r\n" + host + "Content-Type: application/json\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 400"},
		"chunks of too much":          {"POST /publish HTTP/1.1\r\n" + host + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + "10001\r\n" + strings.Repeat(" ", 0x10001) + "\r\n0\r\n\r\n", "HTTP/1.1 413"},
		"HTTP/2 without announcement": {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 403"},
	} {
		c := programs.Got((&net.Dialer{}).DialContext(t.Context(), "tcp", r.addr))(t)
		// The server may refuse before it has read all.
		go io.WriteString(c, tt.request)
		got := make([]byte, len(tt.want))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != tt.want {
			t.Errorf("%s: %q, %v; want %q", what, got, err, tt.want)
		}
		c.Close()
	}
}

func TestServeRefusesOtherComputers(t *testing.T) {
	t.Parallel()
	everywhere := programs.Got(net.Listen("tcp", net.JoinHostPort("0.0.0.0", strconv.Itoa(programs.FreePort(t)))))(t)
	owner, _, err := listenForOwner(t.TempDir())
	programs.Must(t, err)
	server := NewServer(ServerConfig{})
	server.open, server.owner = everywhere, owner
	err = server.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "this computer alone") {
		t.Errorf("Serve on every address: %v", err)
	}
	if c, err := net.Dial("tcp", everywhere.Addr().String()); err == nil {
		c.Close()
		t.Error("the refused listener is still open")
	}
}

package health_test

import (
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// tools is a server of the official SDK, called so.
func tools(name string) *mcp.Server {
	return mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
}

// streamable serves it over HTTP. Left as it is made, it refuses public names on loopback.
func streamable(s *mcp.Server, o mcp.StreamableHTTPOptions) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &o)
}

// at answers at /mcp alone.
func at(h http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", h)
	return mux
}

// before2026 knows no server/discover, and answers it with a status.
func before2026(status int, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") != "" {
			w.WriteHeader(status)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// answering says the same to everybody.
func answering(status int, header http.Header, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name := range header {
			w.Header().Set(name, header.Get(name))
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

// TestMCP asks servers of the official SDK, and others, as an assistant would.
func TestMCP(t *testing.T) {
	t.Parallel()
	anyHost := mcp.StreamableHTTPOptions{DisableLocalhostProtection: true}
	stateless := mcp.StreamableHTTPOptions{DisableLocalhostProtection: true, Stateless: true}
	former := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return tools("notes") }, &mcp.SSEOptions{DisableLocalhostProtection: true})
	localhost := map[string]any{"localhostHost": true}
	served := func(h http.Handler) func(*testing.T) int {
		return func(t *testing.T) int { return serve(t, h, nil) }
	}
	json := http.Header{"Content-Type": {"application/json"}}
	sse := http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}
	for name, c := range map[string]struct {
		port   func(*testing.T) int
		want   agentapi.Health
		detail string // the whole of it but for the port
		option map[string]any
		note   bool
	}{
		"present":                   {port: served(at(streamable(tools("notes"), stateless))), want: "answers", detail: "It speaks MCP at /mcp (version 2026-07-28) and calls itself “notes”."},
		"present, over HTTPS":       {port: func(t *testing.T) int { return serve(t, at(streamable(tools("notes"), stateless)), tlsOnly) }, want: "https", detail: "over HTTPS helps", option: map[string]any{"upstream": "https"}},
		"behind its redirect":       {port: served(moved(http.StatusTemporaryRedirect, "/mcp/", streamable(tools("notes"), stateless))), want: "answers", detail: "(version 2026-07-28)"},
		"behind another's redirect": {port: served(moved(http.StatusTemporaryRedirect, "http://elsewhere.example/mcp/", streamable(tools("notes"), stateless))), want: "answers", detail: "does not speak MCP there (status 307)", note: true},
		"moved, as for a page":      {port: served(moved(http.StatusFound, "/mcp/", streamable(tools("notes"), stateless))), want: "answers", detail: "does not speak MCP there (status 302)", note: true},
		"redirected without end":    {port: served(moved(http.StatusPermanentRedirect, "/mcp", nil)), want: "answers", detail: "(status 308)", note: true},
		"a page":                    {port: served(answering(200, nil, "<h1>hello</h1>")), want: "answers", detail: "It answers at /mcp, and does not speak MCP there (status 200): its documentation says at which path it does.", note: true},
		"nothing at its path":       {port: served(http.NotFoundHandler()), want: "answers", detail: "does not speak MCP there (status 404)", note: true},
		"other calls":               {port: served(answering(200, json, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method","data":"initialize"}}`)), want: "answers", detail: "does not speak MCP", note: true},
		"newer than present":        {port: served(answering(400, json, `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"?","data":{"supported":["2027-01-01","2027-12-24","x"]}}}`)), want: "answers", detail: "(version 2027-12-24)."},
		"another's answer":          {port: served(answering(200, json, `{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25"}}`)), want: "answers", detail: "does not speak MCP", note: true},
		"a sign-in of its own":      {port: served(answering(401, nil, "")), want: "answers", detail: "It answers at /mcp, and asks for a sign-in of its own (status 401)."},
		"broken":                    {port: served(answering(500, nil, "")), want: "answers", detail: "(status 500)", note: true},
		"refuses its address":       {port: served(at(streamable(tools("notes"), mcp.StreamableHTTPOptions{}))), want: "refuses", detail: "to call it localhost helps", option: localhost},
		"refuses it in the former":  {port: served(at(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return tools("notes") }, nil))), want: "refuses", detail: "to call it localhost helps", option: localhost},
		"former":                    {port: served(at(former)), want: "answers", detail: "It speaks MCP at /mcp by the former protocol alone, HTTP with SSE, which newer assistants may not know."},
		"a stream of something":     {port: served(answering(200, sse, "event: tick\ndata: 1\n\nevent: endpoint")), want: "answers", detail: "does not speak MCP", note: true},
		"a claim": {
			port: served(answering(200, sse, "id: 1\n\n: a comment\r\n\r\nevent: message\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\r\ndata: \"result\":{\"protocolVersion\":\"2025-06-18\",\"serverInfo\":{\"name\":\" \\u201d\\u001b[31m\\u202eeno%s \\ntw\\u0000o"+strings.Repeat("é", 1000)+"\"}}}\r\n\r\n")),
			want: "answers", detail: "It speaks MCP at /mcp (version 2025-06-18) and calls itself “[31meno%s two" + strings.Repeat("é", 46) + "…”.",
		},
		"no version": {port: served(answering(200, json, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"\u001b[31m","serverInfo":{"name":"notes"}}}`)), want: "answers", detail: "does not speak MCP", note: true},
		"huge":       {port: served(answering(200, json, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","x":"`+strings.Repeat("x", 1<<20)+`"}}`)), want: "answers", detail: "does not speak MCP", note: true},
		"endless": {port: func(t *testing.T) int {
			return raw(t, endless("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", ": x\n\n"))
		}, want: "answers", detail: "does not speak MCP", note: true},
		"no answer":   {port: func(t *testing.T) int { return raw(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }) }, want: "silent", detail: "does not answer a request"},
		"not HTTP":    {port: func(t *testing.T) int { return raw(t, says("220 mail.example.net ESMTP\r\n")) }, want: "wrong", detail: "does not begin as HTTP does"},
		"any session": {port: served(at(streamable(tools(""), anyHost))), want: "answers", detail: "(version 2025-11-25)."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := build(t)
			h.impatient()
			h.set("a", c.port(t), agentapi.AppOptions{MCP: "/mcp"})
			got := h.Probe(t.Context(), "a")
			if got.Health != c.want || !strings.Contains(got.HealthDetail, c.detail) || !reflect.DeepEqual(got.HealthOption, c.option) || got.HealthNote != c.note {
				t.Errorf("%+v, want %s, %q, %v", got, c.want, c.detail, c.option)
			}
			if got.HealthMCP != (c.want == agentapi.HealthAnswers) {
				t.Errorf("it is about MCP: %v", got.HealthMCP)
			}
		})
	}
}

// moved leads from /mcp to another address with a status, and answers there.
func moved(status int, to string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mcp" {
			http.Redirect(w, r, to, status)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// TestMCPSession has a session end that was begun by asking, whatever else the server does,
// and sees that it is asked as an assistant nobody knows would.
func TestMCPSession(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"unknown method": http.StatusBadRequest, "unknown path": http.StatusNotFound} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := tools("notes")
			sdk := streamable(server, mcp.StreamableHTTPOptions{DisableLocalhostProtection: true})
			var mu sync.Mutex
			var seen []string // guarded by mu
			port := serve(t, before2026(status, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				seen = append(seen, r.Method)
				mu.Unlock()
				if r.Host != host || r.UserAgent() != "Porchlight-probe" || r.Header.Get("Cookie")+r.Header.Get("Authorization")+r.Header.Get("X-Service-Email")+r.Header.Get("Origin") != "" {
					t.Errorf("asked as %s by %v", r.Host, r.Header)
				}
				sdk.ServeHTTP(w, r)
			})), nil)
			h := build(t)
			h.set("a", port, agentapi.AppOptions{MCP: "/"})
			if got := h.Probe(t.Context(), "a"); got.HealthDetail != "It speaks MCP at / (version 2025-11-25) and calls itself “notes”." {
				t.Errorf("%+v", got)
			}
			if !reflect.DeepEqual(seen, []string{"POST", "DELETE"}) {
				t.Errorf("it was sent %v", seen)
			}
			for range server.Sessions() {
				t.Error("a session is left")
			}
		})
	}
}

// TestMCPSessionOfOneThatHangs ends a session whose answer never comes.
func TestMCPSessionOfOneThatHangs(t *testing.T) {
	t.Parallel()
	ended := make(chan string, 10)
	port := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodDelete:
			ended <- r.Header.Get("Mcp-Session-Id")
		case http.MethodPost:
			w.Header().Set("Mcp-Session-Id", "one")
			_, _ = io.Copy(io.Discard, r.Body) // before that nobody tells that the caller has gone
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}), nil)
	h := build(t)
	h.AskFor(2*time.Second, 2*time.Second) // so that nothing is left of the time
	h.set("a", port, agentapi.AppOptions{MCP: "/mcp"})
	h.Probe(t.Context(), "a")
	programs.Eventually(t, "it is ended", func() bool { return len(ended) > 0 })
	if got := <-ended; got != "one" {
		t.Errorf("ended %q", got)
	}
}

// TestMCPRefused asks one that refuses everybody once by its address, and once as localhost.
func TestMCPRefused(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	port := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusForbidden)
	}), nil)
	h := build(t)
	h.set("a", port, agentapi.AppOptions{MCP: "/mcp"})
	if got := h.Probe(t.Context(), "a"); !got.HealthNote || asked.Load() != 2 {
		t.Errorf("asked %d times: %+v", asked.Load(), got)
	}
}

// TestMCPPath is what may be the path.
func TestMCPPath(t *testing.T) {
	t.Parallel()
	for path, ok := range map[string]bool{
		"": true, "/": true, "/mcp": true, "/a%20b/mcp/": true, "/" + strings.Repeat("x", 1023): true,
		"mcp": false, "http://elsewhere.example/mcp": false, "/a b": false, "/é": false, "/mcp?key=1": false, "/mcp?": false, "/mcp#x": false, "/a\r\nX: y": false, "/%zz": false, "*": false, "/" + strings.Repeat("x", 1024): false,
	} {
		if _, err := (agentapi.AppOptions{MCP: path}).Checked(); (err == nil) != ok {
			t.Errorf("%.20q: %v", path, err)
		}
	}
}

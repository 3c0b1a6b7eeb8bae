package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
	"porchlight/test/programs"
)

// does is an app's health by every way the owner reads it.
func (s shell) does(name string) (h agentapi.AppHealth, row string) {
	s.t.Helper()
	var apps []listedApp
	s.json(&apps, "apps")
	for _, a := range apps {
		if a.Name == name {
			h = a.AppHealth
		}
	}
	for line := range strings.Lines(s.ok("apps")) {
		if strings.HasPrefix(line, name+" ") {
			row = line
		}
	}
	return h, row
}

// plant answers on a free port until the test ends.
func plant(t *testing.T, handler http.Handler, change func(*httptest.Server)) string {
	t.Helper()
	app := httptest.NewUnstartedServer(handler)
	app.Config.ErrorLog = log.New(io.Discard, "", 0)
	change(app)
	t.Cleanup(app.Close)
	return portAt(app.Listener)
}

func portAt(l net.Listener) string { return strconv.Itoa(portOf(l.Addr().String())) }

// TestHealthReadsAlike plants every state, and reads it in the answer of approve, in
// the list of apps, in doctor and in the owner's state.
func TestHealthReadsAlike(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	plain := (*httptest.Server).Start
	closed := strconv.Itoa(programs.FreePort(t))
	_, hangs, _ := net.SplitHostPort(silent(t))
	for name, c := range map[string]struct {
		port   string
		want   agentapi.Health
		row    string // in the list
		said   string // by approve
		option string // as it is taken
		state  agentapi.Verdict
	}{
		"answers": {plant(t, page, plain), agentapi.HealthAnswers, " on ", "is on, at", "", agentapi.VerdictFine},
		"failing": {plant(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }), plain),
			agentapi.HealthAnswers, " on ", "visitors get an error as its first page (status 503)", "", agentapi.VerdictNote},
		"signin": {plant(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }), plain),
			agentapi.HealthAnswers, " on ", "asks for a sign-in of its own (status 401)", "", agentapi.VerdictFine},
		"empty":   {plant(t, http.NotFoundHandler(), plain), agentapi.HealthAnswers, " on ", "has no first page (status 404)", "", agentapi.VerdictFine},
		"nothing": {closed, agentapi.HealthNothing, "not answering", "and nothing listens on port " + closed + " yet: start it", "", agentapi.VerdictWrong},
		"refuses": {plant(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.Host, "localhost:") {
				w.WriteHeader(http.StatusForbidden)
			}
		}), plain), agentapi.HealthRefuses, "refuses its address", "the option to call it localhost helps", "--localhost-host", agentapi.VerdictWrong},
		"https": {plant(t, page, (*httptest.Server).StartTLS), agentapi.HealthHTTPS, "speaks HTTPS", "the option to reach it over HTTPS helps", "--upstream https", agentapi.VerdictWrong},
		"h2c": {plant(t, page, func(app *httptest.Server) {
			app.Config.Protocols = new(http.Protocols)
			app.Config.Protocols.SetUnencryptedHTTP2(true)
			app.Start()
		}), agentapi.HealthH2C, "speaks HTTP/2", "the option to speak HTTP/2 to it helps", "--upstream h2c", agentapi.VerdictWrong},
		"silent": {hangs, agentapi.HealthSilent, "not answering", "does not answer a request", "", agentapi.VerdictWrong},
		"wrong":  {plant(t, http.HandlerFunc(twoLengths), plain), agentapi.HealthWrong, "answers wrongly", "two lengths", "", agentapi.VerdictWrong},
		"hinted": {plant(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			scheme := "http"
			if proto := r.Header.Get("X-Forwarded-Proto"); proto != "" {
				scheme = proto
			}
			w.Header().Set("Location", scheme+"://"+r.Host+"/login")
			w.WriteHeader(http.StatusFound)
		}), plain), agentapi.HealthAnswers, " on ", "public-address", "--public-address", agentapi.VerdictNote},
	} {
		t.Run(name, func(t *testing.T) {
			s := shell{t, s.dir}
			s.ok("publish", name, "--label", "App "+name, "--port", c.port)
			if h, _ := s.does(name); !reflect.DeepEqual(h, agentapi.AppHealth{}) {
				t.Errorf("before the approval: %+v", h)
			}
			said := s.ok("approve", name)
			if !strings.Contains(said, c.said) || c.option != "" && !strings.Contains(said, "porchlight options "+name+" "+c.option) {
				t.Errorf("approve said %q, not %q or %q", said, c.said, c.option)
			}
			listed, row := s.does(name)
			if listed.Health != c.want || listed.HealthDetail == "" || listed.HealthAt == nil || !strings.Contains(row, c.row) {
				t.Errorf("apps: %+v, %q", listed, row)
			}
			s.wants(0, c.said, "publish", name, "--label", "App "+name, "--port", c.port)
			app := s.ownerApp(name)
			if !reflect.DeepEqual(app.AppHealth, listed) {
				t.Errorf("the owner's state: %+v, listed %+v", app.AppHealth, listed)
			}
			s.finds("app "+name, c.state, app.Sentence(app.Label), c.option)
			if c.option == "" {
				return
			}
			if _, err := s.owner().ChangeOptions(t.Context(), name, listed.HealthOption); err != nil { // one click
				t.Fatal(err)
			}
			now := s.ok("options", name)
			if typed := s.ok(append([]string{"options", name}, strings.Fields(c.option)...)...); typed != now {
				t.Errorf("typed, the options are %s, clicked they are %s", typed, now)
			}
			programs.Eventually(t, "it was asked again, and answers", func() bool {
				h, _ := s.does(name)
				return h.Health == agentapi.HealthAnswers && h.HealthOption == nil
			})
		})
	}
	// doctor has found some of them to be wrong.
	if code, _, _ := s.run("doctor"); code != commandline.ExitRefused {
		t.Errorf("doctor ended with %d", code)
	}
}

// TestHealthOfMCP: a server of the official SDK answers its first page to everybody, refuses
// public names as it is made, and is found to; with what helps it says which MCP it speaks.
func TestHealthOfMCP(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	server := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	port := plant(t, mux, (*httptest.Server).Start)
	s.ok("publish", "tools", "--label", "Tools", "--port", port)
	s.ok("approve", "tools")
	if h, row := s.does("tools"); h.Health != agentapi.HealthAnswers || !strings.Contains(row, " on ") {
		t.Errorf("by its first page: %+v, %q", h, row)
	}
	s.wants(commandline.ExitRefused, "cannot be the path of MCP", "options", "tools", "--mcp", "mcp")
	s.ok("options", "tools", "--mcp", "/mcp")
	programs.Eventually(t, "it is found to refuse its address", func() bool {
		h, _ := s.does("tools")
		return h.Health == agentapi.HealthRefuses
	})
	s.ok("options", "tools", "--localhost-host")
	const says = " speaks MCP at /mcp (version 2025-11-25)"
	programs.Eventually(t, "it speaks MCP", func() bool { return strings.Contains(s.ok("apps"), "Tools"+says) })
	s.finds("app tools", agentapi.VerdictFine, "Tools"+says, "")
	if again := s.ok("approve", "tools"); !strings.Contains(again, "tools"+says) {
		t.Errorf("approve says %q", again)
	}
}

// twoLengths answers in a way that no client may take.
func twoLengths(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx")
	}
}

// TestNothingIsSentBeforeTheApproval: what a program asks an address for is not
// touched until the owner said yes, nor after they took it back; and the setting keeps
// the agent from asking at all.
func TestNothingIsSentBeforeTheApproval(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	ln := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	var accepted, asked atomic.Int64
	app := &httptest.Server{Listener: counting{ln, &accepted}, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if agent := r.UserAgent(); agent != "Porchlight-probe" || r.URL.Path != "/" || len(r.Cookies()) > 0 {
			t.Errorf("asked as %q for %s", agent, r.URL)
		}
		for field := range r.Header {
			if strings.HasPrefix(field, "X-") && field != "X-Forwarded-Proto" && field != "X-Forwarded-Host" {
				t.Errorf("sent %s", field)
			}
		}
	})}}
	app.Start()
	t.Cleanup(app.Close)
	count := func(want int64, when string) {
		t.Helper()
		if n := asked.Load(); n != want {
			t.Errorf("%s: asked %d times, want %d", when, n, want)
		}
		if n := accepted.Load(); runtime.GOOS != "darwin" && n != want {
			t.Errorf("%s: %d connections, want %d", when, n, want)
		}
	}
	s.ok("publish", "notes", "--label", "Notes", "--port", portAt(ln))
	s.doctor()
	s.does("notes")
	count(0, "waiting")
	s.ok("deny", "notes")
	s.doctor()
	count(0, "denied")
	s.ok("publish", "notes", "--label", "Notes", "--port", portAt(ln))
	s.ok("approve", "notes")
	count(1, "approved")
	s.doctor()
	s.doctor()
	s.does("notes")
	count(1, "looked at within a minute")
	s.ok("pause", "notes")
	s.doctor()
	count(1, "paused")
	s.ok("resume", "notes")
	s.doctor()
	count(1, "resumed")
	s.ok("options", "notes", "--forwarded")
	programs.Eventually(t, "it is asked with its other options", func() bool { return asked.Load() == 2 })
	s.ok("revoke", "notes")
	s.doctor()
	count(2, "revoked")

	s.ok("settings", "--probe=false")
	s.ok("publish", "notes", "--label", "Notes", "--port", portAt(ln))
	s.wants(0, "is on, at", "approve", "notes")
	s.finds("app notes", agentapi.VerdictNote, "is not known", "porchlight settings --probe")
	count(2, "switched off")
	if lines := s.ok("activity"); strings.Contains(lines, "robe") {
		t.Errorf("the activity has %s", lines)
	}
	var seen []json.RawMessage
	s.json(&seen, "requests")
	if len(seen) > 0 {
		t.Errorf("visitors' requests have %s", seen)
	}
}

// counting counts the connections it takes.
type counting struct {
	net.Listener
	taken *atomic.Int64
}

func (c counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.taken.Add(1)
	}
	return conn, err
}

// TestApprovingDoesNotHang: an app that says nothing is told of, and holds the owner
// no longer than the probe may take.
func TestApprovingDoesNotHang(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	_, port, _ := net.SplitHostPort(silent(t))
	s.ok("publish", "slow", "--label", "Slow", "--port", port)
	ctx, cancel := context.WithTimeout(t.Context(), programs.Patience)
	defer cancel()
	pub, err := s.owner().Approve(ctx, "slow")
	if err != nil || pub.Does().Health != agentapi.HealthSilent || pub.URL == "" {
		t.Errorf("%+v, %v", pub, err)
	}
}

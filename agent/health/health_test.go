package health_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/health"
	"porchlight/agent/upstream"
	"porchlight/internal/broadcast"
	"porchlight/test/programs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	root = "maya.example.net"
	host = "notes." + root
)

// house is the rest of an agent: which apps there are, and what the owner chose.
type house struct {
	*health.Health
	changes broadcast.Signal
	off     atomic.Bool
	ahead   atomic.Int64 // of the clock, in ns

	mu     sync.Mutex
	apps   map[string]engine.App        // approved ones, by id; guarded by mu
	root   string                       // guarded by mu
	peer   func(agentapi.Listener) bool // nil: anybody; guarded by mu
	socket uint64                       // that listens; guarded by mu
}

// build has apps asked for longer than outside the tests: a busy machine may need it.
func build(t *testing.T) *house {
	t.Helper()
	h := &house{apps: map[string]engine.App{}, root: root}
	h.Health = health.New(health.Config{
		Find: func(id string) (engine.App, bool) {
			h.mu.Lock()
			defer h.mu.Unlock()
			app, ok := h.apps[id]
			return app, ok
		},
		Root: func() engine.Root {
			h.mu.Lock()
			defer h.mu.Unlock()
			return engine.Root{Name: "maya", Host: h.root}
		},
		Welcomes: func(_ string, _ upstream.Target, peer agentapi.Listener) bool {
			h.mu.Lock()
			allowed := h.peer
			h.mu.Unlock()
			return allowed == nil || allowed(peer)
		},
		Socket: func(upstream.Target) uint64 {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.socket
		},

		ShowedKey: func(context.Context, string, string) bool { return true },
		Elsewhere: func(context.Context, string, upstream.Target) bool { return false },

		On:      func() bool { return !h.off.Load() },
		Changes: &h.changes,
		Now:     func() time.Time { return time.Now().Add(time.Duration(h.ahead.Load())) },
	})
	h.AskFor(programs.Patience, programs.Patience)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = h.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return h
}

// impatient has apps that do not answer given up.
func (h *house) impatient() { h.AskFor(2*time.Second, 500*time.Millisecond) }

// set has visitors reach an app.
func (h *house) set(id string, port int, o agentapi.AppOptions) engine.App {
	app := engine.App{ID: id, Name: "notes", Status: agentapi.StatusLive, Live: true, Port: port, Options: o}
	h.change(func() { h.apps[id] = app })
	return app
}

// pause closes an app to everybody.
func (h *house) pause(id string) {
	h.change(func() { app := h.apps[id]; app.Paused = true; h.apps[id] = app })
}

func (h *house) change(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

// later has time pass.
func (h *house) later(d time.Duration) { h.ahead.Add(int64(d)) }

func portOf(t *testing.T, l net.Listener) int {
	t.Helper()
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

func serve(t *testing.T, handler http.Handler, change func(*httptest.Server)) int {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = discard
	if change != nil {
		change(s)
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s.Listener.Addr().(*net.TCPAddr).Port
}

// slowAsLocalhost refuses its public host at once, and has no answer as localhost until
// whoever asked has gone.
func slowAsLocalhost() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Host, "localhost:") {
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusForbidden)
	})
}

// raw answers each connection with what write does, after the head of a request was
// read.
func raw(t *testing.T, write func(net.Conn)) int {
	t.Helper()
	l := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	programs.ServeConns(t, l, func(conn net.Conn) {
		_ = conn.SetDeadline(time.Now().Add(programs.Patience))
		r := bufio.NewReader(conn)
		if first, err := r.Peek(1); err != nil || first[0] == 22 {
			return // TLS, which has no line that ends
		}
		if _, err := http.ReadRequest(r); err == nil {
			write(conn)
		}
	})
	return portOf(t, l)
}

func says(text string) func(net.Conn) {
	return func(c net.Conn) { _, _ = io.WriteString(c, text) }
}

func tlsOnly(s *httptest.Server) { s.StartTLS() }

// rpc is a gRPC server, which answers no GET.
func rpc(t *testing.T) int {
	t.Helper()
	l := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	s, ended := grpc.NewServer(), make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-ended })
	return l.Addr().(*net.TCPAddr).Port
}

// h2Only speaks HTTP/2 over TLS, and nothing else.
func h2Only(s *httptest.Server) {
	s.TLS = &tls.Config{NextProtos: []string{"h2"}}
	s.EnableHTTP2 = true
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP2(true)
	s.StartTLS()
}

func h2cOnly(s *httptest.Server) {
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
}

// status answers by the host that was asked for.
func status(public, local int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Host, "localhost:") {
			w.WriteHeader(local)
		} else {
			w.WriteHeader(public)
		}
	}
}

// behind leads from / to another address, and answers anything else with a handler.
func behind(to string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// TestStates plants each state, and asks.
func TestStates(t *testing.T) {
	t.Parallel()
	https := agentapi.AppOptions{Upstream: agentapi.UpstreamHTTPS}
	h2c := agentapi.AppOptions{Upstream: agentapi.UpstreamH2C}
	local := agentapi.AppOptions{LocalhostHost: true}
	told := agentapi.AppOptions{PublicAddress: true}
	toOwnHost := http.RedirectHandler("http://"+host+"/login", http.StatusFound)
	page := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	for name, c := range map[string]struct {
		port    func(t *testing.T) int
		options agentapi.AppOptions
		want    agentapi.Health
		detail  string
		option  map[string]any
	}{
		"answers":                             {func(t *testing.T) int { return serve(t, page("hello"), nil) }, agentapi.AppOptions{}, "answers", "It answers on port", nil},
		"401":                                 {func(t *testing.T) int { return serve(t, status(401, 401), nil) }, agentapi.AppOptions{}, "answers", "asks for a sign-in of its own (status 401)", nil},
		"404":                                 {func(t *testing.T) int { return serve(t, status(404, 404), nil) }, agentapi.AppOptions{}, "answers", "has no first page (status 404)", nil},
		"500":                                 {func(t *testing.T) int { return serve(t, status(500, 200), nil) }, agentapi.AppOptions{}, "answers", "visitors get an error as its first page (status 500)", nil},
		"403 for all":                         {func(t *testing.T) int { return serve(t, status(403, 403), nil) }, agentapi.AppOptions{}, "answers", "error as its first page (status 403)", nil},
		"400 for all":                         {func(t *testing.T) int { return serve(t, status(400, 400), nil) }, agentapi.AppOptions{}, "answers", "error as its first page (status 400)", nil},
		"401 but for localhost":               {func(t *testing.T) int { return serve(t, status(401, 200), nil) }, agentapi.AppOptions{}, "refuses", "status 401", map[string]any{"localhostHost": true}},
		"401, and 403 as localhost":           {func(t *testing.T) int { return serve(t, status(401, 403), nil) }, agentapi.AppOptions{}, "answers", "sign-in of its own", nil},
		"421 behind its redirect":             {func(t *testing.T) int { return serve(t, behind("/ui/", status(421, 200)), nil) }, agentapi.AppOptions{}, "refuses", "status 421", map[string]any{"localhostHost": true}},
		"403 behind its redirect":             {func(t *testing.T) int { return serve(t, behind("https://"+host+"/ui/?a=b", status(403, 200)), nil) }, agentapi.AppOptions{}, "refuses", "status 403", map[string]any{"localhostHost": true}},
		"503 behind its redirect":             {func(t *testing.T) int { return serve(t, behind("/ui/", status(503, 503)), nil) }, agentapi.AppOptions{}, "answers", "status 503", nil},
		"405":                                 {func(t *testing.T) int { return serve(t, status(405, 405), nil) }, agentapi.AppOptions{}, "answers", "has no first page (status 405)", nil},
		"nothing":                             {func(t *testing.T) int { return programs.FreePort(t) }, agentapi.AppOptions{}, "nothing", "nothing listens there", nil},
		"refuses 403":                         {func(t *testing.T) int { return serve(t, status(403, 200), nil) }, agentapi.AppOptions{}, "refuses", "status 403", map[string]any{"localhostHost": true}},
		"refuses 400":                         {func(t *testing.T) int { return serve(t, status(400, 404), nil) }, agentapi.AppOptions{}, "refuses", "to call it localhost helps", map[string]any{"localhostHost": true}},
		"refuses, and compiles for localhost": {func(t *testing.T) int { return serve(t, slowAsLocalhost(), nil) }, agentapi.AppOptions{}, "refuses", "does not refuse what is sent to localhost", map[string]any{"localhostHost": true}},
		"refuses 421":                         {func(t *testing.T) int { return serve(t, status(421, 302), nil) }, agentapi.AppOptions{}, "refuses", "status 421", map[string]any{"localhostHost": true}},
		"refused no more":                     {func(t *testing.T) int { return serve(t, status(403, 200), nil) }, local, "answers", "It answers on port", nil},
		"https":                               {func(t *testing.T) int { return serve(t, page("hello"), tlsOnly) }, agentapi.AppOptions{}, "https", "over HTTPS helps", map[string]any{"upstream": "https"}},
		"https as asked":                      {func(t *testing.T) int { return serve(t, page("hello"), tlsOnly) }, https, "answers", "It answers", nil},
		"h2c":                                 {func(t *testing.T) int { return serve(t, page("hello"), h2cOnly) }, agentapi.AppOptions{}, "h2c", "speak HTTP/2 to it helps", map[string]any{"upstream": "h2c"}},
		"h2c as asked":                        {func(t *testing.T) int { return serve(t, page("hello"), h2cOnly) }, h2c, "answers", "It answers", nil},
		"grpc":                                {rpc, agentapi.AppOptions{}, "h2c", "speak HTTP/2 to it helps", map[string]any{"upstream": "h2c"}},
		"grpc over TLS":                       {func(t *testing.T) int { return serve(t, page("hello"), h2Only) }, agentapi.AppOptions{}, "https", "over HTTPS helps", map[string]any{"upstream": "https"}},
		"grpc over TLS as asked":              {func(t *testing.T) int { return serve(t, page("hello"), h2Only) }, https, "answers", "It answers gRPC", nil},
		"grpc as asked":                       {rpc, h2c, "answers", "It answers", nil},
		"h2c by the other":                    {func(t *testing.T) int { return serve(t, page("hello"), h2cOnly) }, agentapi.AppOptions{H2C: true}, "answers", "It answers", nil},
		"https for h2c":                       {func(t *testing.T) int { return serve(t, page("hello"), tlsOnly) }, agentapi.AppOptions{H2C: true}, "https", "is asked in HTTP/2", map[string]any{"upstream": "https", "h2c": false}},
		"plain for https":                     {func(t *testing.T) int { return serve(t, page("hello"), nil) }, https, "wrong", "is asked in HTTPS: the option to reach it over HTTP helps", map[string]any{"upstream": "http"}},
		"plain for h2c":                       {func(t *testing.T) int { return serve(t, page("hello"), nil) }, h2c, "wrong", "the option to reach it over HTTP helps", map[string]any{"upstream": "http"}},
		"silent":                              {func(t *testing.T) int { return raw(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }) }, agentapi.AppOptions{}, "silent", "does not answer a request", nil},
		"drips": {func(t *testing.T) int {
			return raw(t, func(c net.Conn) {
				for _, b := range []byte("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1000)) {
					if _, err := c.Write([]byte{b}); err != nil {
						return
					}
					time.Sleep(50 * time.Millisecond)
				}
			})
		}, agentapi.AppOptions{}, "silent", "does not answer a request", nil},
		"no HTTP": {func(t *testing.T) int { return raw(t, says("220 mail.example.net ESMTP\r\n")) }, agentapi.AppOptions{}, "wrong", "Its answer does not begin as HTTP does (220 mail.example.net ESMTP).", nil},
		"SSH in pieces": {func(t *testing.T) int {
			return raw(t, func(c net.Conn) {
				for _, part := range []string{"SSH", "-2.0-Open", "SSH_9.6\x1b[31m\r", "\nmore"} {
					_, _ = io.WriteString(c, part)
					time.Sleep(10 * time.Millisecond)
				}
				_, _ = io.Copy(io.Discard, c)
			})
		}, agentapi.AppOptions{}, "wrong", `(SSH-2.0-OpenSSH_9.6\x1b[31m).`, nil},
		"two lengths": {func(t *testing.T) int {
			return raw(t, says("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"))
		}, agentapi.AppOptions{}, "wrong", "two lengths", nil},
		"broken off":  {func(t *testing.T) int { return raw(t, says("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nxx")) }, agentapi.AppOptions{}, "wrong", "broke off", nil},
		"101 unasked": {func(t *testing.T) int { return raw(t, says("HTTP/1.1 101 Switching Protocols\r\n\r\n")) }, agentapi.AppOptions{}, "wrong", "switched protocols", nil},
		"after 103": {func(t *testing.T) int {
			return raw(t, says("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
		}, agentapi.AppOptions{}, "answers", "It answers", nil},
		"closes":       {func(t *testing.T) int { return raw(t, says("")) }, agentapi.AppOptions{}, "wrong", "closed the connection", nil},
		"endless head": {func(t *testing.T) int { return raw(t, endless("HTTP/1.1 200 OK\r\n", "X: y\r\n")) }, agentapi.AppOptions{}, "wrong", "longer than 64 KiB", nil},
		"endless body": {func(t *testing.T) int { return raw(t, endless("HTTP/1.1 200 OK\r\n\r\n", strings.Repeat("x", 1000))) }, agentapi.AppOptions{}, "answers", "It answers", nil},
		"endless 100":  {func(t *testing.T) int { return raw(t, endless("", "HTTP/1.1 100 Continue\r\n\r\n")) }, agentapi.AppOptions{}, "wrong", "longer than 64 KiB", nil},
		"an event stream": {func(t *testing.T) int {
			return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}), nil)
		}, agentapi.AppOptions{}, "answers", "It answers", nil},
		"own address in Location": {func(t *testing.T) int { return serve(t, toOwnHost, nil) }, agentapi.AppOptions{}, "answers", "to tell it its address", map[string]any{"publicAddress": true}},
		"redirects to itself": {func(t *testing.T) int {
			return serve(t, http.RedirectHandler("https://"+host+"/", http.StatusMovedPermanently), nil)
		}, agentapi.AppOptions{}, "answers", "to tell it its address", map[string]any{"publicAddress": true}},
		"redirects elsewhere": {func(t *testing.T) int {
			return serve(t, http.RedirectHandler("https://"+host+"/app", http.StatusMovedPermanently), nil)
		}, agentapi.AppOptions{}, "answers", "It answers on", nil},
		"told its address":        {func(t *testing.T) int { return serve(t, toOwnHost, nil) }, told, "answers", "It answers", nil},
		"own address in the page": {func(t *testing.T) int { return serve(t, page(`<a href="http://`+host+`/x">`), nil) }, agentapi.AppOptions{}, "answers", "to tell it its address", map[string]any{"publicAddress": true}},
		"another's address":       {func(t *testing.T) int { return serve(t, page(`<a href="http://`+host+`.evil/x">`), nil) }, agentapi.AppOptions{}, "answers", "It answers on", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := build(t)
			if slices.Contains([]string{"silent", "drips", "an event stream", "refuses, and compiles for localhost"}, name) {
				h.impatient()
			}
			h.set("a", c.port(t), c.options)
			got := h.Probe(t.Context(), "a")
			if got.Health != c.want || !strings.Contains(got.HealthDetail, c.detail) || !reflect.DeepEqual(got.HealthOption, c.option) || got.HealthAt == nil {
				t.Errorf("%+v, want %s, %q, %v", got, c.want, c.detail, c.option)
			}
			if noted := strings.Contains(got.HealthDetail, "an error"); noted != got.HealthNote {
				t.Errorf("noted: %v, of %q", got.HealthNote, got.HealthDetail)
			}
			if got.LastError != nil {
				t.Errorf("a probe is no visitor: %+v", got.LastError)
			}
		})
	}
}

func endless(head, part string) func(net.Conn) {
	return func(c net.Conn) {
		_, err := io.WriteString(c, head)
		for err == nil {
			_, err = io.WriteString(c, part)
		}
	}
}

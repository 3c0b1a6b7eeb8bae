package proxy_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/proxy"
	"porchlight/agent/upstream"
	"porchlight/test/programs"
)

// mirror says what an app was asked, and repeats what a WebSocket says.
func mirror(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "" {
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
		if err != nil {
			return
		}
		defer ws.CloseNow()
		kind, said, err := ws.Read(r.Context())
		if err == nil {
			ws.Write(r.Context(), kind, said)
		}
		return
	}
	body, _ := io.ReadAll(r.Body)
	name := ""
	if r.TLS != nil {
		name = r.TLS.ServerName
	}
	fmt.Fprintf(w, "%s %s %q host=%s sni=%s who=%s", r.Proto, r.Method, body, r.Host, name, r.Header.Get("X-Service-Email"))
}

// reached has notes be a server on a listener, as the options say.
func (r *rig) reached(ln net.Listener, handler http.HandlerFunc, secure bool, change func(*engine.App)) *httptest.Server {
	r.t.Helper()
	srv := httptest.NewUnstartedServer(handler)
	srv.Listener.Close()
	srv.Listener = ln
	if srv.EnableHTTP2 = secure; secure {
		srv.StartTLS()
	} else {
		srv.Config.Protocols = new(http.Protocols)
		srv.Config.Protocols.SetHTTP1(true)
		srv.Config.Protocols.SetUnencryptedHTTP2(true)
		srv.Start()
	}
	r.t.Cleanup(srv.Close)
	port := 1
	if at, ok := ln.Addr().(*net.TCPAddr); ok {
		port = at.Port
	}
	r.publish("notes", port)
	r.change("notes", change)
	return srv
}

func listenAt(t testing.TB, network, address string) net.Listener {
	t.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Skipf("cannot listen on %s here: %v", address, err)
	}
	return ln
}

// socketDir is a short path of ours that nobody else may enter.
func socketDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sock")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	programs.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Each way an app can be reached carries pages, bodies and WebSockets, and says who asks.
func TestEveryUpstream(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		network, address string
		secure           bool
		options          agentapi.AppOptions
		on               string // App.Address
		proto, host, sni string
	}{
		"[::1]":            {"tcp6", "[::1]:0", false, agentapi.AppOptions{}, upstream.IPv6, "HTTP/1.1", sni, ""},
		"http":             {"tcp4", "127.0.0.1:0", false, agentapi.AppOptions{Upstream: "http"}, "", "HTTP/1.1", sni, ""},
		"https":            {"tcp4", "127.0.0.1:0", true, agentapi.AppOptions{Upstream: "https"}, "", "HTTP/1.1", sni, "localhost"},
		"https on [::1]":   {"tcp6", "[::1]:0", true, agentapi.AppOptions{Upstream: "https"}, upstream.IPv6, "HTTP/1.1", sni, "localhost"},
		"https, fixed":     {"tcp4", "127.0.0.1:0", true, agentapi.AppOptions{Upstream: "https", HostHeader: "nas.example:5001"}, "", "HTTP/1.1", "nas.example:5001", "nas.example"},
		"fixed host":       {"tcp4", "127.0.0.1:0", false, agentapi.AppOptions{HostHeader: "intranet.example"}, "", "HTTP/1.1", "intranet.example", ""},
		"h2c":              {"tcp4", "127.0.0.1:0", false, agentapi.AppOptions{Upstream: "h2c"}, "", "HTTP/2.0", sni, ""},
		"h2c, the old way": {"tcp4", "127.0.0.1:0", false, agentapi.AppOptions{H2C: true}, "", "HTTP/2.0", sni, ""},
		"socket":           {"unix", "app.sock", false, agentapi.AppOptions{}, "", "HTTP/1.1", sni, ""},
		"h2c on a socket":  {"unix", "app.sock", false, agentapi.AppOptions{H2C: true}, "", "HTTP/2.0", sni, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.network == "unix" {
				tt.address = filepath.Join(socketDir(t), tt.address)
				tt.options.Upstream = "unix:" + tt.address
			}
			r := newRig(t)
			r.reached(listenAt(t, tt.network, tt.address), mirror, tt.secure, func(app *engine.App) { app.Options, app.Address = tt.options, tt.on })
			for _, http2 := range []bool{false, true} {
				b := r.signedIn("notes", bobID, http2)
				for range 2 { // on a new connection, and on a kept one
					for method, body := range map[string]string{"GET": "", "POST": "hello", "DELETE": ""} {
						_, got := b.read(b.request(method, origin+"/", strings.NewReader(body), "Origin", origin))
						want := fmt.Sprintf("%s %s %q host=%s sni=%s who=bob@example.com", tt.proto, method, body, tt.host, tt.sni)
						if got != want {
							t.Errorf("%s\nwant %s", got, want)
						}
					}
				}
			}
			ws, _, err := r.signedIn("notes", bobID, false).dial("wss://"+sni+"/ws", "Origin", origin)
			if err != nil {
				t.Fatalf("WebSocket: %v", err)
			}
			defer ws.CloseNow()
			programs.Must(t, ws.Write(t.Context(), websocket.MessageText, []byte("echo")))
			if _, said, err := ws.Read(t.Context()); err != nil || string(said) != "echo" {
				t.Errorf("WebSocket: %q, %v", said, err)
			}
		})
	}
}

// gRPC knows nothing but HTTP/2, also to an app that is reached over TLS.
func TestGRPCOverTLS(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.reached(listenAt(t, "tcp4", "127.0.0.1:0"), mirror, true, func(app *engine.App) { app.Options.Upstream = "https" })
	b := r.signedIn("notes", bobID, true)
	for kind, proto := range map[string]string{
		"application/grpc": "HTTP/2.0", "application/grpc+proto; x=y": "HTTP/2.0", "application/grpc-web": "HTTP/1.1", "text/plain": "HTTP/1.1",
	} {
		if _, got := b.read(b.request("POST", origin+"/", strings.NewReader("x"), "Origin", origin, "Content-Type", kind)); !strings.HasPrefix(got, proto+" POST ") {
			t.Errorf("%s: %s", kind, got)
		}
	}
}

// TestPinnedKey: every new connection that shows another key than the kept one is asked
// about, and carries nothing when the answer is no.
func TestPinnedKey(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	var kept sync.Map
	var r *rig
	r = newRig(t, func(c *proxy.Config) {
		c.ShowedKey = func(_ context.Context, name, key string) bool {
			asked.Add(1)
			if was, had := kept.LoadOrStore(name, key); had && was != key {
				r.change("notes", func(a *engine.App) { a.Live = false }) // as the engine does
				r.access.CloseApp("id-notes")
				return false
			}
			r.change("notes", func(a *engine.App) { a.Key = key })
			return true
		}
	})
	var requests atomic.Int64
	answer := func(w http.ResponseWriter, req *http.Request) { requests.Add(1); mirror(w, req) }
	pinned := func(app *engine.App) { app.Options.Upstream, app.Options.Pin = "https", true }
	address := programs.FreeAddress(t)
	first := r.reached(listenAt(t, "tcp4", address), answer, true, pinned)
	b := r.signedIn("notes", bobID, false)
	for _, method := range []string{"GET", "POST", "GET", "POST"} {
		b.fetches(http.StatusOK, method, method, origin+"/", "Origin", origin)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times about one key", n)
	}
	first.Close()

	ca := programs.Got(authority())(t)
	other := programs.Got(ca.Issue("other.localhost"))(t)
	ln := programs.Got(net.Listen("tcp4", address))(t)
	second := httptest.NewUnstartedServer(http.HandlerFunc(answer))
	second.Listener.Close()
	second.Listener, second.TLS = ln, &tls.Config{Certificates: []tls.Certificate{*other}}
	second.StartTLS()
	t.Cleanup(second.Close)
	before := requests.Load()
	for _, method := range []string{"GET", "POST"} {
		r.change("notes", func(a *engine.App) { a.Live = true })
		b.fetches(http.StatusNotFound, method, method, origin+"/secret", "Origin", origin)
	}
	if n := requests.Load() - before; n != 0 {
		t.Errorf("%d requests reached the one with the other key", n)
	}
}

// TestMovedToTheOtherAddress: where nobody takes a connection any more, the engine is
// asked, and what it found is dialled; a socket's file without a program is no move.
func TestMovedToTheOtherAddress(t *testing.T) {
	t.Parallel()
	var r *rig
	var asked atomic.Int64
	r = newRig(t, func(c *proxy.Config) {
		c.Elsewhere = func(_ context.Context, _ string, dead upstream.Target) bool {
			asked.Add(1)
			if dead.Address != "" {
				return false
			}
			r.change("notes", func(a *engine.App) { a.Address = upstream.IPv6 })
			return true
		}
	})
	six := net.JoinHostPort("::1", strconv.Itoa(programs.FreePort(t))) // nobody has it at the other address
	r.reached(listenAt(t, "tcp6", six), mirror, false, func(app *engine.App) { app.Address = "" })
	b := r.signedIn("notes", bobID, false)
	for _, method := range []string{"POST", "GET"} {
		if res, body := b.fetch(method, origin+"/", "Origin", origin); res.StatusCode != http.StatusOK || !strings.HasPrefix(body, "HTTP/1.1 "+method) {
			t.Fatalf("%s: %s\n%s", method, res.Status, body)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// Weakness: whoever may write to the socket's directory decides who is behind it.
// Checked: what is refused gets not a byte, and the visitor a page.
func TestASocketThatIsRefusedGetsNothing(t *testing.T) {
	t.Parallel()
	var heard atomic.Int64
	dir := socketDir(t)
	real := filepath.Join(dir, "app.sock")
	r := newRig(t)
	r.reached(listenAt(t, "unix", real), func(w http.ResponseWriter, req *http.Request) { heard.Add(1); mirror(w, req) }, false, func(app *engine.App) { app.Options.Upstream = "unix:" + real })
	b := r.signedIn("notes", bobID, false)
	if res, body := b.get(origin + "/"); res.StatusCode != http.StatusOK {
		t.Fatalf("%s\n%s", res.Status, body)
	}
	programs.Must(t, os.Symlink(real, filepath.Join(dir, "link.sock")))
	programs.Must(t, os.Symlink(dir, filepath.Join(dir, "around")))
	before := heard.Load()
	for what, at := range map[string]string{
		"a link": filepath.Join(dir, "link.sock"), "a link on the way": filepath.Join(dir, "around", "app.sock"), "nothing": filepath.Join(dir, "none.sock"),
	} {
		r.change("notes", func(a *engine.App) { a.Options.Upstream = "unix:" + at })
		for _, method := range []string{"GET", "POST"} {
			b.fetches(http.StatusBadGateway, fmt.Sprintf("%s, %s", what, method), method, origin+"/", "Origin", origin)
		}
	}
	if n := heard.Load() - before; n != 0 {
		t.Errorf("the app heard %d requests", n)
	}
}

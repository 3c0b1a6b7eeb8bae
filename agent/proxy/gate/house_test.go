package gate_test

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/agent/proxy/gate"
	"porchlight/internal/localca"
	"porchlight/test/programs"
)

// Both ways in are tried with the same bytes, in a bubble whose clock jumps: every
// limit is waited for, and none by the clock on the wall.

const own, library = "own", "net-http"

var ways = []string{own, library}

const visited = "notes.porch.test"

var certificate = sync.OnceValues(func() (*tls.Certificate, error) {
	dir, err := os.MkdirTemp("", "porchlight")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // it is in memory
	ca, err := localca.Open(dir, localca.Options{Names: []string{"porch.test"}})
	if err != nil {
		return nil, err
	}
	return ca.Issue(visited)
})

// pipes is a listener of connections in memory.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// house is a gate that serves in a bubble.
type house struct {
	t    *testing.T
	ln   *pipes
	stop func() // begins the end
	over chan struct{}
}

// onWay runs a test in a bubble, with a gate that serves by one way in.
func onWay(t *testing.T, way string, handler http.HandlerFunc, fn func(*house)) {
	t.Helper()
	cert := programs.Got(certificate())(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		h := &house{t: t, ln: &pipes{conns: make(chan net.Conn), done: make(chan struct{})}, stop: stop, over: make(chan struct{})}
		go func() {
			defer close(h.over)
			if err := gate.Serve(ctx, h.ln, gate.Config{
				TLS:     &tls.Config{Certificates: []tls.Certificate{*cert}},
				Handler: handler, ByLibrary: way == library, Files: 4096, CutOff: func() {}, Log: slog.New(slog.DiscardHandler),
				Broken: func(what any) { t.Errorf("%s: a fault of ours: %v", way, what) },
			}); err != nil {
				t.Errorf("%s: %v", way, err)
			}
		}()
		defer func() { stop(); <-h.over }()
		fn(h)
	})
}

// everyWay does so by each.
func everyWay(t *testing.T, handler http.HandlerFunc, fn func(*house)) {
	t.Helper()
	for _, way := range ways {
		t.Run(way, func(t *testing.T) { onWay(t, way, handler, fn) })
	}
}

// letIn is a handler that lets everybody in.
func letIn(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		gate.ConnOf(r).LetIn(w.Header())
		handler(w, r)
	}
}

// guest is a visitor whose side reads all the time, unless it is another's to read.
type guest struct {
	t    *testing.T
	conn *tls.Conn
	raw  net.Conn
	ours *counted

	mu    sync.Mutex
	got   []byte    // guarded by mu
	ended time.Time // guarded by mu
	done  chan struct{}
}

func (h *house) guest() *guest {
	h.t.Helper()
	g := h.arrives()
	go g.read()
	h.t.Cleanup(func() { g.raw.Close(); <-g.done })
	return g
}

// arrives is a guest after the handshake, who does not read yet.
func (h *house) arrives() *guest {
	h.t.Helper()
	mine, theirs := net.Pipe()
	ours := &counted{Conn: theirs}
	h.ln.conns <- ours
	g := &guest{
		t: h.t, raw: mine, ours: ours, done: make(chan struct{}),
		conn: tls.Client(mine, &tls.Config{ServerName: visited, InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}),
	}
	programs.Must(h.t, g.conn.Handshake())
	return g
}

// counted is the house's side of a connection.
type counted struct {
	net.Conn
	writes atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

func (g *guest) read() {
	defer close(g.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := g.conn.Read(buf)
		g.mu.Lock()
		g.got = append(g.got, buf[:n]...)
		if err != nil {
			g.ended = time.Now()
		}
		g.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// say sends bytes, and waits until everybody has done what they can.
func (g *guest) say(s string) {
	g.t.Helper()
	if _, err := io.WriteString(g.conn, s); err != nil {
		return // it has ended, which the test sees
	}
	synctest.Wait()
}

// heard returns what came since the last time.
func (g *guest) heard() string {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	got := string(g.got)
	g.got = nil
	return got
}

// gone waits for the end of the connection, and says how long that took.
func (g *guest) gone(within time.Duration) time.Duration {
	g.t.Helper()
	from := time.Now()
	select {
	case <-g.done:
	case <-time.After(within):
		g.t.Errorf("the connection is open after %v", within)
		return within
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ended.Sub(from)
}

func (g *guest) stays() {
	g.t.Helper()
	synctest.Wait()
	select {
	case <-g.done:
		g.t.Error("the connection has ended")
	default:
	}
}

// request is a head.
func request(method, path string, lines ...string) string {
	return strings.Join(append([]string{method + " " + path + " HTTP/1.1", "Host: " + visited}, lines...), "\r\n") + "\r\n\r\n"
}

func between(t *testing.T, what string, got, least, most time.Duration) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s: after %v, want %v to %v", what, got, least, most)
	}
}

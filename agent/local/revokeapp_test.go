package local

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"porchlight/test/programs"
)

// endsWithin is how long a test waits for what has to end; nothing takes nearly
// as long unless it never comes.
const endsWithin = 20 * time.Second

// heldApp is an app that keeps whatever is opened open: it begins to answer and
// waits for the visitor to go. It knows of each visit, by the query, when the
// visit came and when its own side of it was gone.
type heldApp struct {
	port int

	mu     sync.Mutex
	visits map[string]*heldVisit
}

type heldVisit struct{ came, gone chan struct{} }

func startHeldApp(t testing.TB) *heldApp {
	t.Helper()
	a := &heldApp{visits: map[string]*heldVisit{}}
	srv := httptest.NewServer(a)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	a.port = portOf(t, srv.Listener.Addr().String())
	return a
}

func (a *heldApp) visit(id string) *heldVisit {
	a.mu.Lock()
	defer a.mu.Unlock()
	v := a.visits[id]
	if v == nil {
		v = &heldVisit{make(chan struct{}), make(chan struct{})}
		a.visits[id] = v
	}
	return v
}

func (a *heldApp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/" {
		fmt.Fprintf(w, "open to %s", r.Header.Get("X-Service-Email"))
		return
	}
	v := a.visit(r.URL.RawQuery)
	defer close(v.gone)
	rc := http.NewResponseController(w)
	switch r.URL.Path {
	case "/plain":
		close(v.came)
		<-r.Context().Done()
	case "/events":
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: hello\n\n")
		rc.Flush()
		close(v.came)
		<-r.Context().Done()
	case "/download":
		block := []byte(strings.Repeat("porchlight", 1000))
		close(v.came)
		for r.Context().Err() == nil {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	case "/upload":
		buf := make([]byte, 1024)
		if _, err := io.ReadFull(r.Body, buf); err != nil {
			return
		}
		close(v.came)
		io.Copy(io.Discard, r.Body)
	case "/socket":
		conn, _, err := rc.Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello")
		close(v.came)
		io.Copy(io.Discard, conn)
	}
}

// opened is one visit that is open: its end is for the test to wait for.
type opened struct {
	*heldVisit
	// ended is closed with the visitor's side; err says how, and is nil for an
	// answer that looks whole.
	ended chan struct{}
	err   error
}

// mustBeOpen wants neither side to have ended.
func (o *opened) mustBeOpen(t testing.TB) {
	t.Helper()
	select {
	case <-o.ended:
		t.Errorf("the visitor was cut off: %v", o.err)
	case <-o.gone:
		t.Error("the app's side is gone")
	default:
	}
}

// awaitClosed wants the visitor's side cut off and the app's gone.
func (o *opened) awaitClosed(t testing.TB) {
	t.Helper()
	for what, side := range map[string]<-chan struct{}{"the visitor's side": o.ended, "the app's side": o.gone} {
		select {
		case <-side:
		case <-time.After(endsWithin):
			t.Fatalf("%s is still open", what)
		}
	}
	if o.err == nil {
		t.Error("the answer ended as if it were whole")
	}
}

// kinds of traffic, as the tests are named.
var traffics = []string{"plain request", "event stream", "WebSocket", "upload", "download", "HTTP2 stream", "bearer request"}

// client opens visits to one app of the house as one person.
type client struct {
	relay string // address of the relay
	roots *tls.Config
	host  string // of the app, with port
	auth  string // a header line: Cookie or Authorization
}

// dial makes a TLS connection to the app's host.
func (c client) dial(protocols ...string) (*tls.Conn, error) {
	conf := c.roots.Clone()
	conf.ServerName, _, _ = net.SplitHostPort(c.host)
	conf.NextProtos = protocols
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: endsWithin}, Config: conf}
	conn, err := d.DialContext(context.Background(), "tcp", c.relay)
	if err != nil {
		return nil, err
	}
	return conn.(*tls.Conn), nil
}

// status asks for the app's front page on a connection of its own.
func (c client) status(t testing.TB) int {
	t.Helper()
	conn := programs.Got(c.dial("http/1.1"))(t)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(endsWithin))
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\n%s\r\nConnection: close\r\n\r\n", c.host, c.auth)
	resp := programs.Got(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	resp.Body.Close()
	return resp.StatusCode
}

// hold opens one visit of a kind and waits until the app has it.
func (c client) hold(t testing.TB, app *heldApp, traffic, id string) *opened {
	t.Helper()
	o := &opened{heldVisit: app.visit(url.QueryEscape(id)), ended: make(chan struct{})}
	if traffic == "HTTP2 stream" {
		c.holdHTTP2(t, o, id)
	} else {
		c.holdHTTP1(t, o, traffic, id)
	}
	select {
	case <-o.came:
	case <-o.ended:
		t.Fatalf("%s ended before it began: %v", traffic, o.err)
	case <-time.After(endsWithin):
		t.Fatalf("%s did not reach the app", traffic)
	}
	return o
}

func (c client) holdHTTP1(t testing.TB, o *opened, traffic, id string) {
	t.Helper()
	conn := programs.Got(c.dial("http/1.1"))(t)
	t.Cleanup(func() { conn.Close() })
	head, path := "GET", "/events"
	extra := ""
	switch traffic {
	case "plain request":
		path = "/plain"
	case "download":
		path = "/download"
	case "WebSocket":
		path, extra = "/socket", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	case "upload":
		head, path, extra = "POST", "/upload", "Transfer-Encoding: chunked\r\n"
	}
	fmt.Fprintf(conn, "%s %s?%s HTTP/1.1\r\nHost: %s\r\n%s\r\n%s\r\n", head, path, url.QueryEscape(id), c.host, c.auth, extra)
	if traffic == "upload" {
		go upload(conn)
	}
	go func() {
		defer close(o.ended)
		defer conn.Close() // as who is cut off does
		answer := bufio.NewReader(conn)
		resp, err := http.ReadResponse(answer, nil)
		if err != nil {
			o.err = err
			return
		}
		if resp.StatusCode == http.StatusSwitchingProtocols {
			if _, err = io.Copy(io.Discard, answer); err == nil {
				err = io.EOF // the end of a socket is its end, polite or not
			}
			o.err = err
			return
		}
		_, o.err = io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != http.StatusOK {
			o.err = fmt.Errorf("answered with %s", resp.Status)
		}
	}()
}

// upload sends chunks until the connection ends.
func upload(conn net.Conn) {
	chunk := "400\r\n" + strings.Repeat("u", 0x400) + "\r\n"
	for {
		if _, err := io.WriteString(conn, chunk); err != nil {
			return
		}
		time.Sleep(2 * time.Millisecond) // an upload of a slow line
	}
}

func (c client) holdHTTP2(t testing.TB, o *opened, id string) {
	t.Helper()
	transport := &http.Transport{
		TLSClientConfig: c.roots.Clone(), ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, c.relay)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+c.host+"/events?"+url.QueryEscape(id), nil)
	programs.Must(t, err)
	name, value, _ := strings.Cut(c.auth, ": ")
	req.Header.Set(name, value)
	resp := programs.Got((&http.Client{Transport: transport}).Do(req))(t)
	t.Cleanup(func() { resp.Body.Close() })
	if resp.ProtoMajor != 2 {
		t.Fatalf("the stream is one of %s", resp.Proto)
	}
	go func() {
		defer close(o.ended)
		defer transport.CloseIdleConnections()
		defer resp.Body.Close()
		_, o.err = io.Copy(io.Discard, resp.Body)
		if errors.Is(o.err, context.Canceled) {
			o.err = nil // the test's end, not Porchlight's doing
		}
	}()
}

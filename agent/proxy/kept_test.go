package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/proxy"
	"porchlight/agent/upstream"
	"porchlight/test/programs"
)

// Tests of the connections to apps: which are kept, and for whom.

// TestDirectConnectionsAreKept: one connection serves requests after each other,
// and what an app does to it meanwhile hurts none.
func TestDirectConnectionsAreKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(n int, c net.Conn) bool
		conns  int64
	}{
		"kept":                  {func(_ int, c net.Conn) bool { io.WriteString(c, okAnswer); return true }, 1},
		"closed without a word": {func(_ int, c net.Conn) bool { io.WriteString(c, okAnswer); return false }, 10},
		"closed on the next request": {func(n int, c net.Conn) bool {
			if n > 0 {
				return false
			}
			io.WriteString(c, okAnswer)
			return true
		}, 10},
		"an answer to nothing": {func(_ int, c net.Conn) bool {
			io.WriteString(c, okAnswer+"HTTP/1.1 408 Timeout\r\nContent-Length: 3\r\n\r\nbad")
			return true
		}, 10},
		"asked to close": {func(_ int, c net.Conn) bool {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
			return true
		}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			port, conns := scripted(t, func(n int, _ *http.Request, conn net.Conn) bool { return c.answer(n, conn) })
			r.publish("notes", port)
			b := r.signedIn("notes", bobID, false)
			for i := range 10 {
				if res, body := b.fetch("GET", origin+"/"); res.StatusCode != 200 || body != "ok" {
					t.Fatalf("request %d: %s %q", i, res.Status, body)
				}
			}
			if got := conns.Load(); got != c.conns {
				t.Errorf("%d connections, want %d", got, c.conns)
			}
			if c.conns == 1 {
				within(t, "the connection is kept by the direct way", func() bool { return proxy.IdleDirect(r.proxy) == 1 })
			}
		})
	}
}

// TestKeptConnectionsOfTheFiles: of many connections to apps that were in use at once no
// more are kept than their share of the files, which each kind has a third of.
func TestKeptConnectionsOfTheFiles(t *testing.T) {
	t.Parallel()
	const files, most, atOnce = 960, 960 / 16 / 3, 30
	r := newRig(t, func(c *proxy.Config) { c.Files = files })
	came, all := make(chan struct{}), make(chan struct{})
	r.app("notes", func(_ http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/together" {
			return
		}
		came <- struct{}{}
		<-all
	})
	b := r.signedIn("notes", bobID, true)
	var asked sync.WaitGroup
	for range atOnce {
		req := b.request("GET", origin+"/together", nil)
		b.addCookies(req)
		asked.Go(func() {
			if res, err := b.client.Do(req); err != nil {
				t.Error(err)
			} else {
				res.Body.Close()
			}
		})
	}
	for range atOnce {
		<-came
	}
	close(all)
	asked.Wait()
	within(t, "nothing is under way", func() bool { taken, _ := proxy.Taken(r.proxy); return taken == 0 })
	if n := proxy.IdleDirect(r.proxy); n > most {
		t.Errorf("%d connections to apps are kept of %d, want %d at most", n, atOnce, most)
	}
}

// TestDirectRepeatsOnce: a request that dies on a new connection is not sent
// again, however it dies.
func TestDirectRepeatsOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	port, conns := scripted(t, func(int, *http.Request, net.Conn) bool { return false })
	r.publish("notes", port)
	b := r.signedIn("notes", bobID, false)
	if res, _ := b.fetch("GET", origin+"/"); res.StatusCode != http.StatusBadGateway {
		t.Errorf("%s, want 502", res.Status)
	}
	if got := conns.Load(); got != 1 {
		t.Errorf("%d connections, want one", got)
	}
}

// TestDirectPiecesArriveAtOnce: whatever an app has said reaches the visitor
// before it says more, wherever the pieces are cut.
func TestDirectPiecesArriveAtOnce(t *testing.T) {
	t.Parallel()
	for _, pieces := range [][]string{
		{"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "a", "b", "c"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n", "1\r\nb\r\n", "1\r\nc\r\n0\r\n\r\n"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\na", "\r\n1\r\nb\r", "\n1\r\nc\r\n0\r\n\r\n"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n1", "\r\nb\r\n1\r", "\nc\r\n0\r\n\r\n"},
		{"HTTP/1.1 200 OK\r\n\r\n", "a", "b", "c"},
	} {
		for _, http2 := range []bool{false, true} {
			r := newRig(t)
			next := make(chan struct{})
			port, _ := scripted(t, func(_ int, _ *http.Request, c net.Conn) bool {
				for _, piece := range pieces {
					io.WriteString(c, piece)
					if _, ok := <-next; !ok {
						return false
					}
				}
				return false
			})
			r.publish("notes", port)
			b := r.signedIn("notes", bobID, http2)
			res := b.do(b.request("GET", origin+"/", nil)) // the head alone
			var got []byte
			for range 3 {
				next <- struct{}{}
				one := make([]byte, 1)
				if _, err := io.ReadFull(res.Body, one); err != nil {
					t.Fatalf("%q: %v after %q", pieces, err, got)
				}
				got = append(got, one...)
			}
			close(next)
			rest, err := io.ReadAll(res.Body)
			res.Body.Close()
			if string(got) != "abc" || len(rest) > 0 || err != nil {
				t.Errorf("%q: %q, then %q, %v", pieces, got, rest, err)
			}
		}
	}
}

// TestDirectEndsWithTheVisitor: an app that is asked by nobody any more sees its
// connection closed.
func TestDirectEndsWithTheVisitor(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		r := newRig(t)
		asked, ended := make(chan struct{}), make(chan error, 1)
		port, _ := scripted(t, func(_ int, _ *http.Request, c net.Conn) bool {
			close(asked)
			_, err := c.Read(make([]byte, 1))
			ended <- err
			return false
		})
		r.publish("notes", port)
		b := r.signedIn("notes", bobID, http2)
		ctx, leave := context.WithCancel(t.Context())
		req := b.request("GET", origin+"/", nil, "Cookie", cookie+"="+b.cookies[cookie]).WithContext(ctx)
		left := make(chan error, 1)
		go func() { _, err := b.client.Do(req); left <- err }()
		<-asked
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("HTTP/2 %v, the visitor: %v", http2, err)
		}
		if err := <-ended; !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
			t.Errorf("HTTP/2 %v, the app's connection: %v", http2, err)
		}
	}
}

// glued is a connection whose writes of TLS leave together, when flush is called.
type glued struct {
	net.Conn
	held []byte
	hold bool
}

func (g *glued) Write(p []byte) (int, error) {
	if !g.hold {
		return g.Conn.Write(p)
	}
	g.held = append(g.held, p...)
	return len(p), nil
}

func (g *glued) flush() {
	g.Conn.Write(g.held)
	g.held, g.hold = nil, false
}

// Weakness: a read of TLS takes all that has come and gives what is in the first record:
// what an app said after an answer, in a record of its own, would be the answer to the
// next request, of another visitor.
func TestNothingIsLeftInTLSForTheNext(t *testing.T) {
	t.Parallel()
	ca := programs.Got(authority())(t)
	made := programs.Got(ca.Issue("localhost"))(t)
	const planted = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nplanted"
	for name, tt := range map[string]struct {
		answer, after string
		conns         int64
	}{
		"kept":        {okAnswer, "", 1},
		"more":        {okAnswer, planted, 4},
		"after a 204": {"HTTP/1.1 204 No Content\r\n\r\n", planted, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var conns atomic.Int64
			port := rawApp(t, func(raw net.Conn) {
				conns.Add(1)
				raw.SetDeadline(time.Now().Add(20 * time.Second))
				under := &glued{Conn: raw}
				c := tls.Server(under, &tls.Config{Certificates: []tls.Certificate{*made}})
				br := bufio.NewReader(c)
				for {
					if _, err := http.ReadRequest(br); err != nil {
						return
					}
					under.hold = true
					io.WriteString(c, tt.answer)
					io.WriteString(c, tt.after)
					under.flush()
				}
			})
			r := newRig(t)
			r.publish("notes", port)
			r.change("notes", func(a *engine.App) { a.Options.Upstream = "https" })
			b := r.signedIn("notes", bobID, false)
			for i := range 4 {
				if res, body := b.fetch("GET", origin+"/"); strings.Contains(body, "planted") || res.StatusCode > 204 {
					t.Errorf("request %d: %s %q", i, res.Status, body)
				}
				within(t, "the connection is put back", func() bool { return proxy.IdleDirect(r.proxy) == 1 })
			}
			if n := conns.Load(); n != tt.conns {
				t.Errorf("%d connections, want %d", n, tt.conns)
			}
		})
	}
}

// Weakness: what an app says as soon as it is connected to was taken for the end of a
// kept connection, so that nobody was told what it is, and a refusal did not arrive.
func TestWhatIsSaidOnAcceptIsHeard(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		said   string
		status int
		part   string
	}{
		{"SSH-2.0-OpenSSH_9.6\r\n", http.StatusBadGateway, "does not begin as HTTP does"},
		{"HTTP/1.1 503 Full\r\nContent-Length: 4\r\n\r\nfull", http.StatusServiceUnavailable, "full"},
		{okAnswer, http.StatusOK, "ok"},
	} {
		said := make(chan struct{}, 9)
		r := newRig(t, func(c *proxy.Config) { // which is asked before a byte goes out
			c.Welcomes = func(string, upstream.Target, agentapi.Listener) bool { <-said; return true }
		})
		r.publish("notes", rawApp(t, func(c net.Conn) {
			io.WriteString(c, tt.said)
			said <- struct{}{}
			http.ReadRequest(bufio.NewReader(c))
		}))
		b := r.signedIn("notes", bobID, false)
		if res, body := b.fetch("GET", origin+"/"); res.StatusCode != tt.status || !strings.Contains(body, tt.part) {
			t.Errorf("%q: %s %.500q", tt.said, res.Status, body)
		}
	}
}

// Weakness: a request that was answered on a kept connection with something that is not
// HTTP was sent again on a new one, though the app had it and had spoken.
func TestWhatWasAnsweredOddlyIsNotSentAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var asked atomic.Int64
	port, conns := scripted(t, func(n int, _ *http.Request, c net.Conn) bool {
		asked.Add(1)
		if n > 0 {
			io.WriteString(c, "SSH-2.0-x\r\n")
			return false
		}
		io.WriteString(c, okAnswer)
		return true
	})
	r.publish("notes", port)
	b := r.signedIn("notes", bobID, false)
	for i, want := range []int{http.StatusOK, http.StatusBadGateway} {
		b.fetches(want, fmt.Sprintf("request %d", i), "GET", origin+"/")
		if i == 0 {
			within(t, "the connection is put back", func() bool { return proxy.IdleDirect(r.proxy) == 1 })
		}
	}
	if asked.Load() != 2 || conns.Load() != 1 {
		t.Errorf("asked %d times on %d connections", asked.Load(), conns.Load())
	}
}

// What names a body that it may not have is not followed by another request.
func TestConnectionsThatNameABodyWrongly(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]int64{
		"HTTP/1.1 204 No Content\r\n\r\n":                                 2,
		"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n":            2,
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n":          2,
		"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n":            1,
		"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n":   1,
		"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n": 1,
	} {
		r := newRig(t)
		var most atomic.Int64
		port, _ := scripted(t, func(n int, _ *http.Request, c net.Conn) bool {
			most.Store(max(most.Load(), int64(n)+1))
			io.WriteString(c, answer)
			return true
		})
		r.publish("notes", port)
		b := r.signedIn("notes", bobID, false)
		b.fetch("GET", origin+"/")
		if want > 1 {
			within(t, "the connection is put back", func() bool { return proxy.IdleDirect(r.proxy) == 1 })
		}
		if res, _ := b.fetch("GET", origin+"/"); res.StatusCode >= 400 || most.Load() != want {
			t.Errorf("%q: %s, %d requests on a connection, want %d", answer, res.Status, most.Load(), want)
		}
	}
}

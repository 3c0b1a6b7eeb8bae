package proxy_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"porchlight/agent/engine"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

func (b *browser) dial(target string, header ...string) (*websocket.Conn, *http.Response, error) {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Add(header[i], header[i+1])
	}
	for name, value := range b.cookies {
		h.Add("Cookie", name+"="+value)
	}
	ctx, cancel := context.WithTimeout(b.r.t.Context(), time.Minute)
	defer cancel()
	return websocket.Dial(ctx, target, &websocket.DialOptions{HTTPClient: b.client, HTTPHeader: h, Subprotocols: []string{"chat"}})
}

// echo is an app's WebSocket: it says who connected and then echoes.
func echo(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"chat"}})
	if err != nil {
		return
	}
	defer c.CloseNow()
	c.SetReadLimit(1 << 21)
	who := r.Header.Get("X-Service-User") + " " + r.Header.Get("X-Service-Role") + " " + r.Host
	if c.Write(r.Context(), websocket.MessageText, []byte(who)) != nil {
		return
	}
	for {
		kind, msg, err := c.Read(r.Context())
		if err != nil || c.Write(r.Context(), kind, msg) != nil {
			return
		}
	}
}

// A WebSocket carries the identity in its upgrade and messages both ways.
func TestWebSocket(t *testing.T) {
	t.Parallel()
	r, b := newVisitor(t, false, echo)
	c, res, err := b.dial("wss://notes."+rootHost+"/ws", "Origin", origin, "X-Service-Role", "owner")
	programs.Must(t, err)
	defer c.CloseNow()
	if c.Subprotocol() != "chat" || res.StatusCode != 101 {
		t.Errorf("%s, subprotocol %q", res.Status, c.Subprotocol())
	}
	c.SetReadLimit(1 << 21)
	if _, msg, err := c.Read(t.Context()); err != nil || string(msg) != bobID+" member notes."+rootHost {
		t.Errorf("%q %v", msg, err)
	}
	for _, size := range []int{0, 1, 125, 126, 65_535, 65_536, 1 << 20} {
		sent := strings.Repeat("\x80\r\n \n", size)[:size] // no text, and lines that no request may have
		programs.Must(t, c.Write(t.Context(), websocket.MessageBinary, []byte(sent)))
		if _, got, err := c.Read(t.Context()); err != nil || string(got) != sent {
			t.Fatalf("%d bytes: %v", size, err)
		}
	}
	if err := c.Close(websocket.StatusNormalClosure, "bye"); err != nil {
		t.Errorf("closing: %v", err)
	}
	within(t, "nothing is live", func() bool { return len(r.access.Connections()) == 0 })
}

// Weakness: "h2c smuggling": a proxy that passes any Upgrade hands the app's
// connection over, and with it the headers.
// Checked: only a WebSocket's Upgrade reaches the app.
func TestOnlyWebSocketsUpgrade(t *testing.T) {
	t.Parallel()
	r, b, rec := recordedVisitor(t, false)
	for _, upgrade := range []string{"h2c", "websocket, h2c", "h2c\r\nUpgrade: websocket", "TLS/1.0", "websocket\r\nUpgrade: h2c"} {
		answer := r.ask(sni, "GET / HTTP/1.1\r\nHost: notes."+rootHost+"\r\nCookie: "+cookie+"="+b.cookies[cookie]+
			"\r\nConnection: Upgrade, HTTP2-Settings, close\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nUpgrade: "+upgrade+"\r\n\r\n")
		if !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
			t.Errorf("%q: %q", upgrade, answer)
		}
	}
	for _, raw := range rec.requests() {
		if low := strings.ToLower(raw); strings.Contains(low, "upgrade") || strings.Contains(low, "http2-settings") {
			t.Errorf("the app received\n%s", raw)
		}
	}
}

// Server-sent events arrive one by one, as the app writes them, whether or not
// it says how long the answer is.
func TestEventsArriveAtOnce(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		r := newRig(t)
		next := make(chan struct{})
		r.app("notes", func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path == "/length" {
				w.Header().Set("Content-Length", "30")
			} else {
				w.Header().Set("Content-Type", "text/event-stream")
			}
			for i := range 3 {
				fmt.Fprintf(w, "data: %02d\n\n", i)
				w.(http.Flusher).Flush()
				<-next
			}
		})
		b := r.signedIn("notes", bobID, http2)
		for _, path := range []string{"/events", "/length"} {
			res := b.do(b.request("GET", origin+path, nil))
			lines := bufio.NewReader(res.Body)
			for i := range 3 {
				line, err := lines.ReadString('\n')
				if err != nil || line != fmt.Sprintf("data: %02d\n", i) {
					t.Fatalf("http2=%v %s: %q %v", http2, path, line, err)
				}
				lines.ReadString('\n')
				next <- struct{}{}
			}
			res.Body.Close()
		}
	}
}

// 64 MiB pass each way unchanged while the proxy's memory stays small: bodies
// are streamed, never collected.
func TestLargeBodiesStream(t *testing.T) {
	const size = 64 << 20
	for _, http2 := range []bool{false, true} {
		_, b := newVisitor(t, http2, func(w http.ResponseWriter, req *http.Request) {
			sum := sha256.New()
			n, err := io.Copy(sum, req.Body)
			w.Header().Set("Received", fmt.Sprintf("%d %x %v", n, sum.Sum(nil), err))
			w.Header().Set("Content-Length", fmt.Sprint(size))
			io.Copy(w, io.LimitReader(noise(2), size))
		})
		up := sha256.New()
		io.Copy(up, io.LimitReader(noise(1), size))

		peak, stop := peakHeap()
		res := b.do(b.request("PUT", origin+"/", io.LimitReader(noise(1), size)))
		down := sha256.New()
		n, err := io.Copy(down, res.Body)
		res.Body.Close()
		stop()
		if want := fmt.Sprintf("%d %s <nil>", size, hex.EncodeToString(up.Sum(nil))); res.Header.Get("Received") != want {
			t.Errorf("http2=%v: the app received %q, want %q", http2, res.Header.Get("Received"), want)
		}
		want := sha256.New()
		io.Copy(want, io.LimitReader(noise(2), size))
		if n != size || err != nil || string(down.Sum(nil)) != string(want.Sum(nil)) {
			t.Errorf("http2=%v: %d bytes came back changed or cut (%v)", http2, n, err)
		}
		if grown := *peak; grown > size/2 {
			t.Errorf("http2=%v: the heap grew by %d MiB", http2, grown>>20)
		}
	}
}

func noise(seed byte) io.Reader { return rand.NewChaCha8([32]byte{seed}) }

// peakHeap watches how far live memory grows until stop is called.
func peakHeap() (peak *uint64, stop func()) {
	peak = new(uint64)
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	start, done, stopped := m.HeapAlloc, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
				runtime.ReadMemStats(&m)
				if m.HeapAlloc > start {
					*peak = max(*peak, m.HeapAlloc-start)
				}
			}
		}
	}()
	return peak, func() { close(done); <-stopped }
}

// Expect: 100-continue reaches the app: the visitor's body is asked for only
// when the app wants it.
func TestExpectContinue(t *testing.T) {
	t.Parallel()
	r, b := newVisitor(t, false, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/no" {
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		body, _ := io.ReadAll(req.Body)
		w.Write(body)
	})
	head := func(path string) string {
		return "POST " + path + " HTTP/1.1\r\nHost: notes." + rootHost + "\r\nCookie: " + cookie + "=" + b.cookies[cookie] +
			"\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
	}
	c := r.raw(sni, head("/yes"))
	in := bufio.NewReader(c)
	if line, err := in.ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%q %v", line, err)
	}
	in.ReadString('\n')
	io.WriteString(c, "hello")
	res, err := http.ReadResponse(in, nil)
	for err == nil && res.StatusCode == http.StatusContinue { // the app's own word, after that of whoever read the body
		res, err = http.ReadResponse(in, nil)
	}
	programs.Must(t, err)
	if body, err := io.ReadAll(res.Body); string(body) != "hello" {
		t.Errorf("%s: %q %v", res.Status, body, err)
	}
	c = r.raw(sni, head("/no"))
	if line, err := bufio.NewReader(c).ReadString('\n'); line != "HTTP/1.1 413 Request Entity Too Large\r\n" {
		t.Errorf("%q %v", line, err)
	}
}

// Response trailers, declared and late, reach the visitor.
func TestResponseTrailers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.app("notes", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "Declared")
		io.WriteString(w, "body")
		w.Header().Set("Declared", "one")
		w.Header().Set(http.TrailerPrefix+"Late", "two")
	})
	for _, http2 := range []bool{false, true} {
		b := r.signedIn("notes", bobID, http2)
		res, _ := b.fetch("GET", origin+"/")
		if res.Trailer.Get("Declared") != "one" || res.Trailer.Get("Late") != "two" {
			t.Errorf("http2=%v: %v", http2, res.Trailer)
		}
	}
}

// Weakness: over HTTP/2 by net/http, the answer of an app that announces a trailer and
// sends none had no end.
func TestTrailerThatNeverComes(t *testing.T) {
	t.Parallel()
	for way := range servings {
		r := newRigBy(t, way)
		r.app("notes", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "Declared")
			io.WriteString(w, "body")
		})
		for _, http2 := range []bool{false, true} {
			b := r.signedIn("notes", bobID, http2)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			res, body := b.read(b.request("GET", origin+"/", nil).WithContext(ctx))
			cancel()
			if res.StatusCode != 200 || body != "body" || len(res.Trailer["Declared"]) != 0 {
				t.Errorf("%s, http2=%v: %s %q %v", way, http2, res.Status, body, res.Trailer)
			}
		}
	}
}

// Weakness seen elsewhere (Pomerium#1279, Home Assistant#56760): streams and
// WebSockets outlive the access they were opened with.
// Attack: hold an upload, a slow answer, an event stream, a WebSocket and a
// download that is not read open, then lose access, in each way there is.
// Checked: every one of them ends, and none looks whole.
func TestLosingAccessClosesWhatIsOpen(t *testing.T) {
	t.Parallel()
	ways := map[string]func(*rig, *browser) int{
		"withdrawn": func(r *rig, _ *browser) int {
			return r.setPeople(r.person(bobID, func(p *controlapi.Person) { p.Apps = nil })...)
		},
		"removed": func(r *rig, _ *browser) int { return r.setPeople(r.person(bobID, nil)...) },
		"signed out everywhere": func(r *rig, _ *browser) int {
			return r.setPeople(r.person(bobID, func(p *controlapi.Person) { p.Epoch++ })...)
		},
		"denied here": func(r *rig, _ *browser) int {
			n, err := r.access.Deny(store.DenyRecord{AccountID: bobID})
			if err != nil {
				t.Error(err)
			}
			return n
		},
		"app stopped": func(r *rig, _ *browser) int {
			r.change("notes", func(a *engine.App) { a.Live = false })
			return r.access.CloseApp("id-notes")
		},
		"signed out": func(r *rig, b *browser) int {
			live := r.access.Connections()["id-notes"]
			b.fetches(200, "sign out", "POST", origin+"/.porchlight/sign-out")
			return live
		},
	}
	for what, lose := range ways {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.app("notes", func(w http.ResponseWriter, req *http.Request) {
				switch req.URL.Path {
				case "/ws":
					echo(w, req)
				case "/events":
					w.Header().Set("Content-Type", "text/event-stream")
					w.(http.Flusher).Flush()
					<-req.Context().Done()
				case "/upload":
					io.Copy(io.Discard, req.Body)
				case "/flood":
					io.Copy(w, noise(3))
				default:
					<-req.Context().Done()
				}
			})
			h1 := r.signedIn("notes", bobID, false)
			h2 := r.browser(true)
			h2.cookies = h1.cookies
			type ended struct {
				what string
				err  error
			}
			errs := make(chan ended, 10)
			bodies, end := io.Pipe()
			defer end.Close()
			hold := func(b *browser, method, path string, body io.Reader) {
				req := b.request(method, origin+path, body)
				b.addCookies(req)
				go func() {
					res, err := b.client.Do(req)
					if err == nil {
						_, err = io.Copy(io.Discard, res.Body)
						res.Body.Close()
						if err == nil && res.StatusCode >= 400 {
							err = errors.New(res.Status) // Go's client asked again, and was refused
						}
					}
					errs <- ended{fmt.Sprint(path, " ", b == h2), err}
				}()
			}
			hold(h1, "GET", "/slow", nil)
			hold(h2, "GET", "/slow", nil)
			hold(h1, "GET", "/events", nil)
			hold(h2, "GET", "/events", nil)
			hold(h1, "PUT", "/upload", bodies)
			hold(h2, "PUT", "/upload", bodies)
			ws, _, err := h1.dial("wss://notes."+rootHost+"/ws", "Origin", origin)
			programs.Must(t, err)
			defer ws.CloseNow()
			_, _, err = ws.Read(t.Context())
			programs.Must(t, err)
			go func() {
				_, _, err := ws.Read(t.Context())
				errs <- ended{"WebSocket", err}
			}()
			// Two downloads nobody reads fill every buffer on the way.
			r.raw(sni, "GET /flood HTTP/1.1\r\nHost: notes."+rootHost+"\r\nCookie: "+cookie+"="+h1.cookies[cookie]+"\r\n\r\n")
			stuck := h2.do(h2.request("GET", origin+"/flood", nil))
			defer stuck.Body.Close()

			const held = 9
			within(t, "everything is open", func() bool { return r.access.Connections()["id-notes"] == held })
			if n := lose(r, h1); n != held {
				t.Errorf("closed %d, want %d", n, held)
			}
			for range held - 2 {
				select {
				case e := <-errs:
					if e.err == nil {
						t.Errorf("%s ended as if it were whole", e.what)
					}
				case <-time.After(time.Minute):
					t.Fatal("something stays open")
				}
			}
			within(t, "nothing is live", func() bool { return len(r.access.Connections()) == 0 })
		})
	}
}

// When the proxy stops, what is open is cut off and Serve returns.
func TestServeEndsWithOpenConnections(t *testing.T) {
	t.Parallel()
	r, b := newVisitor(t, false, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/ws" {
			echo(w, req)
			return
		}
		w.(http.Flusher).Flush()
		<-req.Context().Done()
	})
	ws, _, err := b.dial("wss://notes." + rootHost + "/ws")
	programs.Must(t, err)
	defer ws.CloseNow()
	res := b.do(b.request("GET", origin+"/", nil))
	defer res.Body.Close()
	r.stop()
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("a stream ended as if it were whole")
	}
	var timeout net.Error
	if _, _, err := ws.Read(t.Context()); err == nil {
		// The greeting was on its way already.
		if _, _, err = ws.Read(t.Context()); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
			t.Errorf("the WebSocket is open: %v", err)
		}
	}
}

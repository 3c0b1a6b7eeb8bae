package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"html"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/proxy"
	"porchlight/agent/upstream"
	"porchlight/test/programs"
)

// What an answer that cannot be used comes to for the visitor.
type fate int

const (
	page  fate = iota // a page says so
	cut               // the answer has begun, and ends so that it does not look whole
	whole             // it is odd, and can be read in one way
)

// How an app ends a connection after what it said.
type ending int

const (
	closes ending = iota
	resets
	stays
)

const marker = "s3cret" // said by the app, and shown to no visitor

// malformed is what apps say. Each is told rightly, and none looks whole.
var malformed = []struct {
	name, says string
	ends       ending
	fate       fate
	state      agentapi.Health
	reason     string
}{
	// Another protocol, or none.
	{"nothing, closed", "", closes, page, "wrong", "closed the connection before it answered"},
	{"nothing, reset", "", resets, page, "wrong", "reset the connection"},
	{"an alert of TLS", "\x15\x03\x01\x00\x02\x02\x46", closes, page, "https", "answered with TLS"},
	{"an alert of TLS that stays", "\x15\x03\x03\x00\x02\x02\x32", stays, page, "https", "answered with TLS"},
	{"a handshake of TLS", "\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03 s3cret", closes, page, "https", "answered with TLS"},
	{"SETTINGS of HTTP/2", "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00@\x00", closes, page, "h2c", "answered with HTTP/2"},
	{"SETTINGS of HTTP/2 with a space", "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00 \x00", stays, page, "h2c", "answered with HTTP/2"},
	{"GOAWAY of HTTP/2", "\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01", closes, page, "h2c", "answered with HTTP/2"},
	{"zeros", strings.Repeat("\x00", 64), closes, page, "wrong", "answer does not begin as HTTP does"},
	{"a page without a head", "<!doctype html><title>s3cret</title>", closes, page, "wrong", "answer does not begin as HTTP does"},
	{"JSON without a head", `{"s3cret":true}` + "\n", closes, page, "wrong", "answer does not begin as HTTP does"},
	{"a line of text", "s3cret words here\r\n\r\n", stays, page, "wrong", "answer does not begin as HTTP does"},
	{"SSH", "SSH-2.0-OpenSSH_9.6 s3cret\r\n", stays, page, "wrong", "answer does not begin as HTTP does"},
	{"SMTP", "220 s3cret ESMTP\r\n", stays, page, "wrong", "answer does not begin as HTTP does"},
	{"IMAP", "* OK s3cret\r\n", stays, page, "wrong", "answer does not begin as HTTP does"},
	{"Redis", "-ERR wrong number of arguments for 'get' command\r\n", closes, page, "wrong", "answer does not begin as HTTP does"},
	{"MySQL", "\x4a\x00\x00\x00\x0a8.0.36\x00", stays, page, "wrong", "answer does not begin as HTTP does"},
	{"Icecast", "ICY 200 OK\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "answer does not begin as HTTP does"},
	{"a terminal's colours", "\x1b[31mHTTP/1.1 200 OK\r\n\r\n", closes, page, "wrong", "answer does not begin as HTTP does"},
	{"a byte order mark", "\xef\xbb\xbfHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "answer does not begin as HTTP does"},
	{"a space first", " HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "answer does not begin as HTTP does"},
	{"empty lines first", "\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "answer does not begin as HTTP does"},
	{"a small http", "http/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "answer does not begin as HTTP does"},
	{"HTP", "HTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "answer does not begin as HTTP does"},
	// The first line.
	{"a version in words", "HTTP/one.one 200 OK\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "answer does not begin as HTTP does"},
	{"half a version", "HTTP/1 200 OK\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "answer does not begin as HTTP does"},
	{"no status", "HTTP/1.1\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "answer does not begin as HTTP does"},
	{"a space for a status", "HTTP/1.1 \r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "status that is no number"},
	{"a short status", "HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "status that is no number"},
	{"a long status", "HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "status that is no number"},
	{"a status in words", "HTTP/1.1 yes s3cret\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "status that is no number"},
	{"a negative status", "HTTP/1.1 -20 OK\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "status that is no number"},
	{"status 0", "HTTP/1.1 000 OK\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "status that is no number"},
	{"status 99", "HTTP/1.1 099 OK\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "status that is no number"},
	{"half a first line, closed", "HTTP/1.1 20", closes, page, "wrong", "status that is no number"},
	{"half a first line, reset", "HTTP/1.1 20", resets, page, "wrong", "status that is no number"},
	// Fields.
	{"a line without a colon", "HTTP/1.1 200 OK\r\ns3cret\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "header line of its answer is malformed"},
	{"a space before a colon", "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok", stays, page, "wrong", "header line of its answer is malformed"},
	{"a space before the first name", "HTTP/1.1 200 OK\r\n X: s3cret\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "header line of its answer is malformed"},
	{"no name", "HTTP/1.1 200 OK\r\n: s3cret\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "header line of its answer is malformed"},
	{"a control byte in a name", "HTTP/1.1 200 OK\r\nX\x01Y: s3cret\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "header line of its answer is malformed"},
	{"a name beyond ASCII", "HTTP/1.1 200 OK\r\nX-\xc3\xbc: s3cret\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "header line of its answer is malformed"},
	{"a zero in a value", "HTTP/1.1 200 OK\r\nX: s3\x00cret\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "header line of its answer is malformed"},
	{"a bare CR in a value", "HTTP/1.1 200 OK\r\nX: s3\rcret: 1\r\nContent-Length: 2\r\n\r\nok", stays, page, "wrong", "header line of its answer is malformed"},
	{"half a head, closed", "HTTP/1.1 200 OK\r\nX: s3cret\r\n", closes, page, "wrong", "broke off in the middle"},
	{"half a head, reset", "HTTP/1.1 200 OK\r\nX: s3cret\r\n", resets, page, "wrong", "broke off in the middle"},
	{"one long line", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("s3cret", 50_000) + "\r\n\r\n", stays, page, "wrong", "longer than 256 KiB"},
	{"many lines", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: s3cret\r\n", 30_000) + "\r\n", stays, page, "wrong", "longer than 256 KiB"},
	{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!", stays, page, "wrong", "answered with two lengths"},
	{"two lengths in a line", "HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nok!", stays, page, "wrong", "length that is no number"},
	{"a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok", stays, page, "wrong", "length that is no number"},
	{"a length with a sign", "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok", stays, page, "wrong", "length that is no number"},
	{"a length in hex", "HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nok", stays, page, "wrong", "length that is no number"},
	{"an empty length", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nok", stays, page, "wrong", "length that is no number"},
	{"a length beyond 64 bits", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok", stays, page, "wrong", "length that is no number"},
	{"another encoding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok", stays, page, "wrong", "transfer encoding that is not known"},
	{"chunks twice", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", stays, page, "wrong", "transfer encoding that is not known"},
	{"two encodings", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n2\r\nok\r\n0\r\n\r\n", stays, page, "wrong", "transfer encoding that is not known"},
	{"a length in the trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n0\r\nContent-Length: 5\r\n\r\n", stays, page, "wrong", "trailer that may not be one"},
	{"101 unasked", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", stays, page, "wrong", "switched protocols without being asked"},
	{"101 to h2c", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", stays, page, "wrong", "switched protocols without being asked"},
	{"101 to nothing", "HTTP/1.1 101 Switching Protocols\r\n\r\n", stays, page, "wrong", "switched protocols without being asked"},
	{"100 and no answer", "HTTP/1.1 100 Continue\r\n\r\n", closes, page, "wrong", ""},
	{"103 and no answer", "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n", closes, page, "wrong", ""},
	{"103 for ever", strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n", 6_000), closes, page, "wrong", ""},
	// Bodies.
	{"less than its length, closed", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", closes, cut, "wrong", "broke off in the middle"},
	{"less than its length, reset", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", resets, cut, "wrong", "reset the connection"},
	{"none of its length", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", closes, cut, "wrong", "broke off in the middle"},
	{"no chunk at all", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", closes, cut, "wrong", "broke off in the middle"},
	{"no last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", closes, cut, "wrong", "broke off in the middle"},
	{"half a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\nhalf", closes, cut, "wrong", "broke off in the middle"},
	{"half a chunk, reset", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\nhalf", resets, cut, "wrong", "reset the connection"},
	{"a chunk's length in words", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfour\r\nhalf\r\n0\r\n\r\n", stays, cut, "wrong", "chunk that is malformed"},
	{"a chunk's length is negative", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-4\r\nhalf\r\n0\r\n\r\n", stays, cut, "wrong", "chunk that is malformed"},
	{"a chunk's length is empty", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\nhalf\r\n0\r\n\r\n", stays, cut, "wrong", "chunk that is malformed"},
	{"a chunk's length beyond 64 bits", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11111111111111111\r\nhalf\r\n0\r\n\r\n", stays, cut, "wrong", "chunk that is malformed"},
	{"a chunk longer than it says", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhalf\r\n0\r\n\r\n", stays, cut, "wrong", "chunk that is malformed"},
	{"a chunk's line without end", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;" + strings.Repeat("x", 20_000) + "\r\nhalf\r\n0\r\n\r\n", stays, cut, "wrong", "chunk that is malformed"},
	{"chunks of almost nothing", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("x", 2_000)+"\r\nx\r\n", 100), stays, cut, "wrong", "almost all framing"},
	{"half a trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n4\r\nhalf\r\n0\r\nX: s3", closes, cut, "wrong", "trailers were too long, or not whole"},
	{"a malformed trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n4\r\nhalf\r\n0\r\nX s3cret\r\n\r\n", stays, cut, "wrong", "header line of its answer is malformed"},
	// Nothing to wait for.
	{"silence", "", stays, page, "silent", "did not answer in time"},
	{"silence in the first line", "HTTP/1.1 2", stays, page, "silent", "did not answer in time"},
	{"silence in the head", "HTTP/1.1 200 OK\r\nX: s3cret\r\n", stays, page, "silent", "did not answer in time"},
	{"silence after 100", "HTTP/1.1 100 Continue\r\n\r\n", stays, page, "silent", "did not answer in time"},
	// Odd, with one reading.
	{"no reason", "HTTP/1.1 200\r\nContent-Length: 4\r\n\r\nfine", stays, whole, "", ""},
	{"a status of its own", "HTTP/1.1 799 s3cret\r\nContent-Length: 4\r\n\r\nfine", stays, whole, "", ""},
	{"lines that end in LF", "HTTP/1.1 200 OK\nContent-Length: 4\n\nfine", stays, whole, "", ""},
	{"the same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nfine", stays, whole, "", ""},
	{"chunks and a length", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n4\r\nfine\r\n0\r\n\r\n", stays, whole, "", ""},
	{"more than its length", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfines3cret", stays, whole, "", ""},
	{"a second answer", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfineHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ns3cret", stays, whole, "", ""},
	{"HTTP/1.0 until the end", "HTTP/1.0 200 OK\r\n\r\nfine", closes, whole, "", ""},
}

// talker is an app that says bytes to whoever asks, whatever was asked.
type talker struct {
	mu   sync.Mutex
	says string
	ends ending
}

func (a *talker) say(says string, ends ending) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.says, a.ends = says, ends
}

func newTalker(t *testing.T) (a *talker, port int) {
	t.Helper()
	a = &talker{}
	return a, rawApp(t, a.serve)
}

func (a *talker) serve(c net.Conn) {
	for r := bufio.NewReader(c); ; {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		io.Copy(io.Discard, req.Body)
		a.mu.Lock()
		says, ends := a.says, a.ends
		a.mu.Unlock()
		io.WriteString(c, says)
		switch ends {
		case closes:
			return
		case resets:
			c.(*net.TCPConn).SetLinger(0)
			return
		}
	}
}

// Weakness: the owner's page said in English what was wrong with an answer, whatever
// language their browser asked for.
func TestMalformedAnswersInGerman(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	app, port := newTalker(t)
	r.publish("notes", port)
	owner := r.signedIn("notes", ownerID, false)
	for _, c := range malformed {
		if c.fate != page || c.state == agentapi.HealthSilent || c.reason == "" {
			continue
		}
		app.say(c.says, c.ends)
		req := owner.request("GET", origin+"/page", nil, "Sec-Fetch-Mode", "navigate", "Accept", "text/html", "Accept-Language", "de")
		req.Header.Del("Origin")
		owner.addCookies(req)
		res := programs.Got(owner.client.Do(req))(t)
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		programs.Must(t, err)
		if res.StatusCode != http.StatusBadGateway || strings.Contains(html.UnescapeString(string(text)), c.reason) {
			t.Errorf("%s: %s\n%s", c.name, res.Status, text)
		}
	}
}

func TestMalformedAnswers(t *testing.T) {
	t.Parallel()
	if len(malformed) < 67 {
		t.Fatalf("%d answers", len(malformed))
	}
	type told struct{ app, state, detail string }
	failures := make(chan told, 10)
	r := newRig(t, func(c *proxy.Config) {
		c.OnFailed = func(appID string, why upstream.Failure, _ bool) {
			failures <- told{appID, string(why.State), why.Detail}
		}
	})
	app, port := newTalker(t)
	r.publish("notes", port)
	h1, h2 := r.signedIn("notes", bobID, false), r.signedIn("notes", bobID, true)
	owner := r.signedIn("notes", ownerID, false)
	for _, c := range malformed {
		app.say(c.says, c.ends)
		r.change("notes", func(a *engine.App) { a.Options.FirstByte = 0 })
		if c.state == agentapi.HealthSilent {
			r.change("notes", func(a *engine.App) { a.Options.FirstByte = 1 })
		}
		for _, way := range []struct {
			name, method string
			b            *browser
		}{
			{"GET over HTTP/1.1", "GET", h1}, {"GET over HTTP/2", "GET", h2},
			{"POST over HTTP/1.1", "POST", h1}, {"POST over HTTP/2", "POST", h2},
			{"the owner's GET", "GET", owner},
		} {
			if c.state == agentapi.HealthSilent && (way.method == "POST" || way.b == owner) {
				continue // only what loads a page is given up, and once is enough to wait
			}
			var body io.Reader
			if way.method == "POST" {
				body = strings.NewReader("x=1")
			}
			req := way.b.request(way.method, origin+"/page?x=1", body, "Sec-Fetch-Mode", "navigate", "Accept", "text/html", "Origin", origin)
			if way.method == "GET" {
				req.Header.Del("Origin")
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			req = req.WithContext(ctx)
			way.b.addCookies(req)
			var got []byte
			res, err := way.b.client.Do(req)
			if err == nil {
				got, err = io.ReadAll(res.Body)
				res.Body.Close()
			}
			text := string(got)
			switch c.fate {
			case page:
				status := 502
				if c.state == agentapi.HealthSilent {
					status = 504
				}
				if err != nil || res.StatusCode != status || strings.Contains(text, "http-equiv") || !strings.Contains(text, `href="/page?x=1"`) {
					t.Errorf("%s, %s: %v, %v\n%s", c.name, way.name, res, err, text)
					break
				}
				if status == 502 && (!strings.Contains(text, "answered something that is not HTTP: ") || !strings.Contains(text, c.reason)) ||
					status == 504 && !strings.Contains(text, c.reason) {
					t.Errorf("%s, %s: the page does not say %q\n%s", c.name, way.name, c.reason, text)
				}
				if way.b != owner && strings.Contains(text, marker) {
					t.Errorf("%s, %s: a visitor is shown what the app said\n%s", c.name, way.name, text)
				}
			case cut:
				if err == nil {
					t.Errorf("%s, %s: it looks whole: %s %q", c.name, way.name, res.Status, text)
				}
			case whole:
				if err != nil || text != "fine" {
					t.Errorf("%s, %s: %v, %q, %v", c.name, way.name, res, text, err)
				}
				if len(failures) != 0 {
					t.Errorf("%s, %s: told as a failure: %+v", c.name, way.name, <-failures)
				}
				continue
			}
			select {
			case f := <-failures:
				if way.b == owner && c.fate == page && c.state != agentapi.HealthSilent && !strings.Contains(html.UnescapeString(text), f.detail) {
					t.Errorf("%s: the owner's page does not say %q\n%s", c.name, f.detail, text)
				}
				if f.app != "id-notes" || f.state != string(c.state) || !strings.Contains(f.detail, c.reason) {
					t.Errorf("%s, %s: the owner is told %+v, want %s and %q", c.name, way.name, f, c.state, c.reason)
				}
				if strings.ContainsFunc(f.detail, func(r rune) bool { return r < ' ' }) || len(f.detail) > 400 {
					t.Errorf("%s, %s: the owner is told %q", c.name, way.name, f.detail)
				}
			case <-time.After(time.Minute):
				t.Errorf("%s, %s: the owner is told nothing", c.name, way.name)
			}
		}
	}
	if len(failures) != 0 {
		t.Errorf("told twice: %+v", <-failures)
	}
}

// Each failure is told, and each answer. That nobody was there is told apart.
func TestFailuresAreTold(t *testing.T) {
	t.Parallel()
	var told string
	r := newRig(t, func(c *proxy.Config) {
		c.OnFailed = func(_ string, why upstream.Failure, down bool) { told += fmt.Sprintf("%s, down: %t", why.State, down) }
		c.OnAnswered = func(string) { told += "answer" }
	})
	app, port := newTalker(t)
	b := r.signedIn("notes", bobID, false)
	const fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	for _, step := range []struct {
		port       int
		says, want string
	}{
		{port, fine, "answer"},
		{port, fine, "answer"},
		{1, "", "nothing, down: true"},
		{1, "", "nothing, down: true"},
		{port, "no", "wrong, down: false"},
		{port, "\x15", "https, down: false"},
		{port, fine, "answer"},
	} {
		told = "" // whoever writes it has answered by the time fetch returns
		app.say(step.says, closes)
		r.publish("notes", step.port)
		if b.fetch("GET", origin+"/"); told != step.want {
			t.Errorf("%d %q: told %q, want %q", step.port, step.says, told, step.want)
		}
	}
}

// An app that is spoken to in another protocol than its own is told apart, whichever
// of them its owner chose.
func TestAnotherProtocolThanItsOwn(t *testing.T) {
	t.Parallel()
	type told struct{ state, detail string }
	failures := make(chan told, 10)
	r := newRig(t, func(c *proxy.Config) {
		c.OnFailed = func(_ string, why upstream.Failure, _ bool) { failures <- told{string(why.State), why.Detail} }
	})
	fine := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") })
	serve := func(h2c, secure bool) int {
		srv := httptest.NewUnstartedServer(fine)
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		srv.Config.Protocols = new(http.Protocols)
		srv.Config.Protocols.SetHTTP1(!h2c)
		srv.Config.Protocols.SetUnencryptedHTTP2(h2c)
		if secure {
			srv.StartTLS()
		} else {
			srv.Start()
		}
		t.Cleanup(srv.Close)
		return srv.Listener.Addr().(*net.TCPAddr).Port
	}
	app, alert := newTalker(t)
	app.say("\x15\x03\x01\x00\x02\x02\x46", stays)
	_, closed := newTalker(t)
	const reset = "it reset the connection"
	plain, secure, h2c := serve(false, false), serve(false, true), serve(true, false)
	b := r.signedIn("notes", bobID, true)
	for _, c := range []struct {
		port     int
		upstream string
		reason   string // empty: it answers
	}{
		{plain, "", ""},
		{plain, agentapi.UpstreamHTTPS, "it did not answer with TLS, and was spoken to with"},
		{plain, agentapi.UpstreamH2C, "it answered with HTTP/1.1, and was spoken to in HTTP/2"},
		{secure, agentapi.UpstreamHTTPS, ""},
		{alert, agentapi.UpstreamH2C, "it answered with TLS, and was spoken to without"},
		{closed, agentapi.UpstreamH2C, "it closed the connection before it answered"},
		{h2c, agentapi.UpstreamH2C, ""},
		{h2c, agentapi.UpstreamHTTPS, "it did not answer with TLS, and was spoken to with"},
	} {
		r.publish("notes", c.port)
		r.change("notes", func(a *engine.App) { a.Options.Upstream = c.upstream })
		for _, method := range []string{"GET", "POST"} {
			res, body := b.fetch(method, origin+"/", "Origin", origin)
			if c.reason == "" {
				if res.StatusCode != 200 || body != "fine" || len(failures) != 0 {
					t.Errorf("%+v, %s: %s %s", c, method, res.Status, body)
				}
				continue
			}
			f := <-failures
			if c.port == closed { // a reset, where the system finds something unread
				body = strings.ReplaceAll(body, reset, c.reason)
				f.detail = strings.Replace(strings.ToLower(f.detail), reset, c.reason, 1)
			}
			if res.StatusCode != 502 || !strings.Contains(body, c.reason) {
				t.Errorf("%+v, %s: %s %s", c, method, res.Status, body)
			}
			if !strings.HasPrefix(strings.ToLower(f.detail), strings.ToLower(c.reason)) {
				t.Errorf("%+v, %s: %+v", c, method, f)
			}
		}
	}
}

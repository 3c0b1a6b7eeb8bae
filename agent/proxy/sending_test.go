package proxy_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"porchlight/test/programs"
)

// hereBody is a body of which the server says whether it has come.
type hereBody struct {
	io.Reader
	here bool
}

func (b *hereBody) AtHand() bool { return b.here }
func (b *hereBody) Close() error { return nil }

// post has a visitor's request with a body reach the proxy as its server gives it.
func (r *rig) post(b *browser, method string, length int64, body io.ReadCloser) *discard {
	w := &discard{header: http.Header{}}
	r.proxy.ServeHTTP(w, &http.Request{
		Method: method, URL: &url.URL{Path: "/"}, RequestURI: "/", Host: sni, Body: body, ContentLength: length,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: "127.0.0.1:1",
		Header: http.Header{"Cookie": {cookie + "=" + b.cookies[cookie]}}, TLS: &tls.ConnectionState{ServerName: sni},
	})
	return w
}

// A short body that has come already leaves with its head, in one piece; one that is
// still to come is waited for beside the answer; and one that is cut off is answered
// with a sentence, and looks whole to no app.
func TestShortBodiesLeaveWithTheirHeads(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first, whole := make(chan int, 1), make(chan bool, 1)
	r.publish("notes", rawApp(t, func(c net.Conn) {
		buf := make([]byte, 64<<10)
		n, _ := c.Read(buf)
		first <- n
		req, err := http.ReadRequest(bufio.NewReader(io.MultiReader(strings.NewReader(string(buf[:n])), c)))
		if err == nil {
			_, err = io.Copy(io.Discard, req.Body)
		}
		whole <- err == nil
		io.WriteString(c, okAnswer)
	}))
	b := r.signedIn("notes", bobID, false)
	text := strings.Repeat("x", 20_000)
	for _, tt := range []struct {
		length       int64
		body         string
		here         bool
		status       int
		least, most  int // bytes of the first piece
		never, whole bool
	}{
		{length: 1000, body: text[:1000], here: true, status: 200, least: 1000, most: 2000, whole: true},
		{length: 20_000, body: text, here: true, status: 200, least: 20_000, most: 21_000, whole: true},
		{length: 1000, body: text[:1000], status: 200, least: 100, most: 2000, whole: true},
		{length: -1, body: text, here: true, status: 200, least: 100, most: 21_000, whole: true},
		{length: 1000, body: text[:10], here: true, status: 400, never: true},
		{length: 1000, body: text[:10], status: 400, least: 100, most: 1000},
	} {
		body := io.Reader(strings.NewReader(tt.body))
		if int64(len(tt.body)) < tt.length {
			body = io.MultiReader(body, brokenReader{})
		}
		w := r.post(b, "POST", tt.length, &hereBody{body, tt.here})
		if w.status != tt.status {
			t.Fatalf("%+v: %d", tt, w.status)
		}
		if tt.never {
			continue
		}
		if n := <-first; n < tt.least || n > tt.most {
			t.Errorf("%d bytes, here %v: %d came at first", tt.length, tt.here, n)
		}
		if got := <-whole; got != tt.whole {
			t.Errorf("%d bytes, here %v: whole to the app is %v", tt.length, tt.here, got)
		}
	}
}

// brokenReader is the end of a body that was cut off.
type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Weakness: an app that begins its answer before it has read the request competed with
// the visitor's server, which reads what little is left of a body before an answer's
// head goes out: what the server took never reached the app, which waited for it, or had
// a body with a hole.
func TestNobodyElseReadsTheBody(t *testing.T) {
	t.Parallel()
	const half = 100_000
	text := make([]byte, 2*half)
	for i := range text {
		text[i] = byte('a' + i/1000%26)
	}
	for _, way := range []string{"X-Direct", reverseHeader} {
		for _, chunked := range []bool{false, true} {
			r := newRig(t)
			got := make(chan string, 1)
			r.publish("notes", rawApp(t, func(c net.Conn) {
				c.SetDeadline(time.Now().Add(programs.Patience))
				req, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok")
				body, err := io.ReadAll(req.Body)
				if err != nil {
					body = []byte(err.Error())
				}
				got <- string(body)
				io.WriteString(c, "ok")
			}))
			b := r.signedIn("notes", bobID, false)
			head := fmt.Sprintf("POST / HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\nCookie: %s=%s\r\n%s: trailers\r\n", sni, origin, cookie, b.cookies[cookie], way)
			piece := func(p []byte) string { return string(p) }
			last := ""
			if chunked {
				head += "Transfer-Encoding: chunked\r\n\r\n"
				piece = func(p []byte) string { return fmt.Sprintf("%x\r\n%s\r\n", len(p), p) }
				last = "0\r\n\r\n"
			} else {
				head += fmt.Sprintf("Content-Length: %d\r\n\r\n", len(text))
			}
			c := r.raw(sni, head+piece(text[:half]))
			c.SetDeadline(time.Now().Add(time.Minute))
			in := bufio.NewReader(c)
			sent := make(chan error, 1)
			go func() {
				var err error
				for p := text[half:]; len(p) > 0 && err == nil; p = p[1000:] {
					_, err = io.WriteString(c, piece(p[:1000]))
				}
				if err == nil {
					_, err = io.WriteString(c, last)
				}
				sent <- err
			}()
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Errorf("%s, chunked %v: the answer: %v", way, chunked, err)
			} else if body, err := io.ReadAll(res.Body); string(body) != "okok" || err != nil {
				t.Errorf("%s, chunked %v: %q, %v", way, chunked, body, err)
			}
			if err := <-sent; err != nil {
				t.Errorf("%s, chunked %v: sending: %v", way, chunked, err)
			}
			c.Close()
			select {
			case body := <-got:
				if body != string(text) {
					t.Errorf("%s, chunked %v: %d bytes came, or others: %.80q", way, chunked, len(body), body)
				}
			case <-time.After(programs.Patience):
				t.Errorf("%s, chunked %v: nothing came whole", way, chunked)
			}
		}
	}
}

// A body of another length than was said is cut off, and looks whole to no app.
func TestBodiesOfAnotherLengthAreNotWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	whole := make(chan bool, 1)
	r.publish("notes", rawApp(t, func(c net.Conn) {
		req, err := http.ReadRequest(bufio.NewReader(c))
		if err == nil {
			_, err = io.Copy(io.Discard, req.Body)
		}
		whole <- err == nil
	}))
	b := r.signedIn("notes", bobID, false)
	for _, body := range []string{strings.Repeat("x", 999), strings.Repeat("x", 1001)} {
		if w := r.post(b, "POST", 1000, &hereBody{strings.NewReader(body), false}); w.status != http.StatusBadRequest {
			t.Errorf("%d bytes: %d", len(body), w.status)
		}
		if <-whole {
			t.Errorf("%d bytes look whole", len(body))
		}
	}
}

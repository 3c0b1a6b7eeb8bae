package proxy_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
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

package proxy_test

import (
	"bytes"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"testing"
)

// BenchmarkHandler is one request between the server that read it and an app on a
// kept connection: what the proxy itself costs, without TLS and without a client. The
// app is nothing but an answer, and part of what is measured.
func BenchmarkHandler(b *testing.B) {
	const session, token = "Cookie", "Authorization"
	for name, known := range map[string]string{"cookie": session, "token": token} {
		b.Run(name, func(b *testing.B) {
			r, visitor := oneVisitor(b)
			values := []string{cookie + "=" + visitor.cookies[cookie]}
			if known == token {
				values = []string{"Bearer " + r.token(bobID)}
			}
			w := &discard{header: http.Header{}}
			u, _ := url.Parse("/")
			req := &http.Request{
				Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody,
				RemoteAddr: "127.0.0.1:1", TLS: &tls.ConnectionState{ServerName: sni},
			}
			agent, accept := []string{"bench"}, []string{"*/*"}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				clear(req.Header)
				req.Method, req.Host, req.RequestURI, req.URL = "GET", sni, "/", u
				req.Header["User-Agent"], req.Header["Accept"], req.Header[known] = agent[:1], accept[:1], values[:1]
				r.proxy.ServeHTTP(w, req)
				if w.status != 200 || w.n != 100 {
					b.Fatal(w.status, w.n)
				}
				w.n = 0
			}
		})
	}
}

// discard is a visitor who reads nothing.
type discard struct {
	header    http.Header
	status, n int
}

func (w *discard) Header() http.Header         { return w.header }
func (w *discard) WriteHeader(status int)      { w.status = status }
func (w *discard) Write(p []byte) (int, error) { w.n += len(p); return len(p), nil }
func (w *discard) FlushError() error           { return nil }

// oneVisitor is signed in at an app that answers every read with a hundred bytes.
func oneVisitor(b testing.TB) (*bearerRig, *browser) {
	r := newBearerRig(b)
	answer := append([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 100\r\nDate: Sun, 22 Nov 2026 18:00:00 GMT\r\n\r\n"), bytes.Repeat([]byte("x"), 100)...)
	r.publish("notes", rawApp(b, func(c net.Conn) {
		buf := make([]byte, 4<<10)
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	}))
	return r, r.signedIn("notes", bobID, false)
}

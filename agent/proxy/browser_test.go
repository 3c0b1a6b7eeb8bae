package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"porchlight/test/programs"
)

// browser holds cookies the way a browser does for one host.
type browser struct {
	r       *rig
	cookies map[string]string
	client  *http.Client
}

func (r *rig) browser(http2 bool) *browser {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	tr := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, r.addr)
		},
		TLSClientConfig:       &tls.Config{RootCAs: r.roots},
		Protocols:             protocols,
		DisableCompression:    true,
		ExpectContinueTimeout: 5 * time.Second,
	}
	r.t.Cleanup(tr.CloseIdleConnections)
	return &browser{r: r, cookies: map[string]string{}, client: &http.Client{
		Transport:     tr,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// heedless has a browser over HTTP/2 send heads longer than the other side announces, as
// browsers do and Go does not.
func (b *browser) heedless() {
	//lint:ignore SA1019 that of net/http takes no connection whose bytes are changed on the way
	tr := &http2.Transport{
		//lint:ignore SA1019 as above
		DisableCompression: true,
		//lint:ignore SA1019 as above
		DialTLSContext: func(ctx context.Context, network, _ string, _ *tls.Config) (net.Conn, error) {
			dialer := tls.Dialer{Config: &tls.Config{RootCAs: b.r.roots, ServerName: sni, NextProtos: []string{"h2"}}}
			conn, err := dialer.DialContext(ctx, network, b.r.addr)
			if err != nil {
				return nil, err
			}
			return programs.Heedless(conn)
		},
	}
	//lint:ignore SA1019 as above
	b.r.t.Cleanup(tr.CloseIdleConnections)
	b.client.Transport = tr
}

func (b *browser) addCookies(req *http.Request) {
	for name, value := range b.cookies {
		req.AddCookie(&http.Cookie{Name: name, Value: value})
	}
}

// do sends a request with the browser's cookies and takes those of the answer.
func (b *browser) do(req *http.Request) *http.Response {
	b.r.t.Helper()
	res, err := b.try(req)
	if err != nil {
		b.r.t.Fatalf("%s %s: %v", req.Method, req.URL, err)
	}
	return res
}

// try is do where there may be no answer.
func (b *browser) try(req *http.Request) (*http.Response, error) {
	b.addCookies(req)
	res, err := b.client.Do(req)
	if err != nil {
		return nil, err
	}
	for _, c := range res.Cookies() {
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		} else {
			b.cookies[c.Name] = c.Value
		}
	}
	return res, nil
}

func (b *browser) request(method, target string, body io.Reader, header ...string) *http.Request {
	b.r.t.Helper()
	req := programs.Got(http.NewRequestWithContext(b.r.t.Context(), method, target, body))(b.r.t)
	for i := 0; i < len(header); i += 2 {
		req.Header[header[i]] = append(req.Header[header[i]], header[i+1])
	}
	return req
}

// get loads a page as a browser does and returns status, header and body.
func (b *browser) get(target string, header ...string) (*http.Response, string) {
	b.r.t.Helper()
	return b.read(b.request("GET", target, nil, append([]string{"Sec-Fetch-Mode", "navigate", "Accept", "text/html"}, header...)...))
}

// inPseudo is a page as a browser gets it whose reader speaks the pseudo-locale.
func (b *browser) inPseudo(target string) string {
	b.r.t.Helper()
	_, body := b.get(target, "Accept-Language", "en-XA")
	return body
}

// fetch asks as a script or a program does.
func (b *browser) fetch(method, target string, header ...string) (*http.Response, string) {
	b.r.t.Helper()
	return b.read(b.request(method, target, nil, header...))
}

// gets wants a status for get; what says what is asked.
func (b *browser) gets(status int, what, target string, header ...string) {
	b.r.t.Helper()
	if res, body := b.get(target, header...); res.StatusCode != status {
		b.r.t.Errorf("%s: %s, want %d\n%s", what, res.Status, status, body)
	}
}

// fetches wants a status for fetch; what says what is asked.
func (b *browser) fetches(status int, what, method, target string, header ...string) {
	b.r.t.Helper()
	if res, body := b.fetch(method, target, header...); res.StatusCode != status {
		b.r.t.Errorf("%s: %s, want %d\n%s", what, res.Status, status, body)
	}
}

func (b *browser) read(req *http.Request) (*http.Response, string) {
	b.r.t.Helper()
	res := b.do(req)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.r.t.Fatalf("%s %s: %v", req.Method, req.URL, err)
	}
	return res, string(body)
}

// signIn goes through the whole bounce and returns where it ended.
func (b *browser) signIn(target, accountID string) string {
	b.r.t.Helper()
	res, _ := b.get(target)
	if res.StatusCode != http.StatusSeeOther {
		b.r.t.Fatalf("GET %s: %s, want a bounce", target, res.Status)
	}
	res, body := b.get(b.r.issue(res.Header.Get("Location"), accountID))
	if res.StatusCode != http.StatusSeeOther {
		b.r.t.Fatalf("callback: %s\n%s", res.Status, body)
	}
	return res.Header.Get("Location")
}

// signedIn is a browser with a session of one person at one app.
func (r *rig) signedIn(name, accountID string, http2 bool) *browser {
	r.t.Helper()
	b := r.browser(http2)
	b.signIn("https://"+name+"."+rootHost+"/", accountID)
	return b
}

// newVisitor is a rig with the app notes, and Bob's browser, which is signed in there.
func newVisitor(t testing.TB, http2 bool, notes http.HandlerFunc) (*rig, *browser) {
	t.Helper()
	r := newRig(t)
	r.app("notes", notes)
	return r, r.signedIn("notes", bobID, http2)
}

// recordedVisitor is newVisitor with a recorder as the app.
func recordedVisitor(t testing.TB, http2 bool) (*rig, *browser, *recorder) {
	t.Helper()
	r, rec := newRig(t), newRecorder(t)
	r.publish("notes", rec.port)
	return r, r.signedIn("notes", bobID, http2), rec
}

// raw opens a TLS connection for a host and sends bytes as they are.
func (r *rig) raw(sni, bytes string) net.Conn {
	r.t.Helper()
	c := programs.Got(tls.Dial("tcp", r.addr, &tls.Config{RootCAs: r.roots, ServerName: sni}))(r.t)
	r.t.Cleanup(func() { c.Close() })
	programs.Got(io.WriteString(c, bytes))(r.t)
	return c
}

// ask is raw, and what comes back until the connection ends.
func (r *rig) ask(sni, bytes string) string {
	r.t.Helper()
	answer, _ := io.ReadAll(r.raw(sni, bytes)) // an abrupt end is an end
	return string(answer)
}

// recorder is an app that keeps the exact bytes of every connection and answers
// each request head with an empty 200.
type recorder struct {
	mu   sync.Mutex
	got  []*bytes.Buffer
	port int
}

func newRecorder(t testing.TB) *recorder {
	rec := &recorder{}
	rec.port = rawApp(t, rec.serve)
	return rec
}

// rawApp is an app of which serve has each connection, and returns its port.
func rawApp(t testing.TB, serve func(net.Conn)) (port int) {
	t.Helper()
	ln := listenAt(t, "tcp4", "127.0.0.1:0")
	programs.ServeConns(t, ln, serve)
	return ln.Addr().(*net.TCPAddr).Port
}

// serve answers one request and closes, so that each connection is one request.
func (rec *recorder) serve(c net.Conn) {
	c.SetDeadline(time.Now().Add(20 * time.Second))
	buf := new(bytes.Buffer)
	rec.mu.Lock()
	rec.got = append(rec.got, buf)
	rec.mu.Unlock()
	tee := io.TeeReader(c, writerFunc(func(p []byte) (int, error) {
		rec.mu.Lock()
		defer rec.mu.Unlock()
		return buf.Write(p)
	}))
	req, err := http.ReadRequest(bufio.NewReader(tee))
	if err != nil {
		return
	}
	io.Copy(io.Discard, req.Body)
	io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// requests returns what each connection carried.
func (rec *recorder) requests() []string {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	var out []string
	for _, b := range rec.got {
		out = append(out, b.String())
	}
	return out
}

// within waits for something to become true, looking often; it fails after a
// minute.
func within(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

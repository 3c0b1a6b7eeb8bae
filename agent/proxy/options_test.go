package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/proxy"
	"porchlight/test/programs"
)

// An app may learn the visitor's address, scheme and host, when the owner says
// so: they are true, and what the visitor claims is still nowhere.
func TestForwardedHeadersAreOurs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rec := newRecorder(t)
	r.publish("notes", rec.port)
	r.change("notes", func(a *engine.App) { a.Options.Forwarded = true })
	b := r.signedIn("notes", bobID, false)
	res, body := b.fetch("GET", origin+"/", "X-Forwarded-For", "203.0.113.9", "X_Forwarded_Proto", "http", "X-Forwarded-Host", "evil.test", "X-Forwarded-Prefix", "/x")
	if res.StatusCode != 200 {
		t.Fatalf("%s %s", res.Status, body)
	}
	raw := rec.requests()[0]
	for _, line := range []string{"X-Forwarded-For: 127.0.0.1", "X-Forwarded-Proto: https", "X-Forwarded-Host: notes." + rootHost} {
		if strings.Count(raw, "\r\n"+line+"\r\n") != 1 {
			t.Errorf("%q is not there once:\n%s", line, raw)
		}
	}
	if strings.Contains(raw, "203.0.113.9") || strings.Contains(raw, "evil") || strings.Contains(raw, "Prefix") {
		t.Errorf("the visitor's claims reached the app:\n%s", raw)
	}
}

// Weakness: an app that trusts a header of its own for who is there (Radicale's
// X-Remote-User) believes whoever sends it, in any spelling it folds together.
// Attack: a member sends the header and its aliases, in Connection and trailers
// too.
// Checked: the app gets it once, with the verified value, or not at all.
func TestOwnIdentityHeader(t *testing.T) {
	t.Parallel()
	r, b, rec := recordedVisitor(t, false)
	for _, c := range []struct{ header, value, want string }{
		{"X-Remote-User", agentapi.IdentityEmail, "X-Remote-User: bob@example.com"},
		{"x-webauth-user", agentapi.IdentityID, "X-Webauth-User: " + bobID},
		{"X-My-App-Login", "", "X-My-App-Login: bob@example.com"},
		{"X-Forwarded-User", agentapi.IdentityEmail, "X-Forwarded-User: bob@example.com"},
		{"", "", ""},
		{"Transfer-Encoding", "", ""},
		{"X-Service-Role", "", ""},
		{"X-Forwarded-For", "", ""},
		{"Cookie", "", ""},
		{"bad name", "", ""},
	} {
		r.change("notes", func(a *engine.App) { a.Options.IdentityHeader, a.Options.IdentityValue = c.header, c.value })
		before := len(rec.requests())
		body, w := io.Pipe()
		req := b.request("POST", origin+"/", body, "Connection", "X-My-App-Login, X-Remote-User")
		for _, alias := range []string{"X-Remote-User", "X_Remote_User", "x.remote.user", "X-Webauth-User", "X-Forwarded-User"} {
			req.Header[alias] = []string{"forged"}
		}
		req.Trailer = http.Header{"Checksum": nil}
		if c.want == "X-My-App-Login: bob@example.com" {
			req.Header["X_my_app_login"], req.Header["X-My-App.Login"] = []string{"forged"}, []string{"forged"}
			req.Trailer["X-My-App-Login"], req.Trailer["X_my_app_login"] = nil, nil
		}
		go func() {
			io.WriteString(w, "hello")
			for name := range req.Trailer {
				req.Trailer[name] = []string{"forged"}
			}
			req.Trailer.Set("Checksum", "fine")
			w.Close()
		}()
		if res, text := b.read(req); res.StatusCode != 200 {
			t.Fatalf("%q: %s %s", c.header, res.Status, text)
		}
		raw := rec.requests()[before]
		if strings.Contains(raw, "forged") {
			t.Errorf("%q: a forged value reached the app:\n%s", c.header, raw)
		}
		if c.want != "" && strings.Count(raw, "\r\n"+c.want+"\r\n") != 1 {
			t.Errorf("%q is not there once:\n%s", c.want, raw)
		}
		if c.want == "" && strings.Count(raw, "bob@example.com") != 1 { // in X-Service-Email
			t.Errorf("%q was sent:\n%s", c.header, raw)
		}
		wantIdentity(t, raw, bobID, "bob@example.com", "maya", "Notes", "member")
	}
}

// An app that speaks HTTP/2 without TLS is spoken to in it: gRPC's trailers pass
// both ways, streams flow while both sides talk, and WebSockets still work.
func TestH2C(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	handler := func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/ws" {
			echo(w, req)
			return
		}
		if req.ProtoMajor != 2 || req.Header.Get("Te") != "trailers" || req.Header.Get("X-Service-User") != bobID {
			http.Error(w, req.Proto, http.StatusHTTPVersionNotSupported)
			return
		}
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
		w.(http.Flusher).Flush()
		buf := make([]byte, 64)
		for { // one message back for each that comes, while the request goes on
			n, err := req.Body.Read(buf)
			if n > 0 {
				w.Write(buf[:n])
				w.(http.Flusher).Flush()
			}
			if err != nil {
				break
			}
		}
		w.Header().Set("Grpc-Status", "0")
		w.Header().Set("Grpc-Message", "fine")
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(handler))
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(true)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	r.publish("notes", srv.Listener.Addr().(*net.TCPAddr).Port)
	r.change("notes", func(a *engine.App) { a.Options.H2C = true })

	b := r.signedIn("notes", bobID, true)
	in, w := io.Pipe()
	res := b.do(b.request("POST", origin+"/pkg.Service/Method", in, "Content-Type", "application/grpc", "Te", "trailers"))
	defer res.Body.Close()
	buf := make([]byte, 16)
	for _, message := range []string{"first", "second"} {
		io.WriteString(w, message)
		if n, err := io.ReadAtLeast(res.Body, buf, len(message)); err != nil || string(buf[:n]) != message {
			t.Fatalf("%q came back as %q, %v", message, buf[:n], err)
		}
	}
	w.Close()
	if _, err := io.ReadAll(res.Body); err != nil || res.Trailer.Get("Grpc-Status") != "0" || res.Trailer.Get("Grpc-Message") != "fine" {
		t.Errorf("trailers %v, %v", res.Trailer, err)
	}

	h1 := r.signedIn("notes", bobID, false)
	c, _, err := h1.dial("wss://notes."+rootHost+"/ws", "Origin", origin)
	programs.Must(t, err)
	defer c.CloseNow()
	if _, _, err := c.Read(t.Context()); err != nil {
		t.Errorf("a WebSocket beside h2c: %v", err)
	}
}

// A stopped process takes connections and answers nothing (the kernel does the
// first). Somebody who loads a page is told after a while; a stream that says
// nothing for longer is left alone.
func TestStuckAppIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *proxy.Config) { c.Patience = 3 * time.Second }) // what comes at once comes within that
	release := make(chan struct{})
	asked := make(chan string, 10)
	r.app("notes", func(w http.ResponseWriter, req *http.Request) {
		asked <- req.URL.Path
		if req.URL.Path == "/early" {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
		}
		select {
		case <-release:
		case <-req.Context().Done():
		}
		io.WriteString(w, "late")
	})
	b := r.signedIn("notes", bobID, true)
	res, body := b.get(origin + "/stuck?x=1")
	<-asked
	if res.StatusCode != 504 || !strings.Contains(body, "Notes is taking too long") || !strings.Contains(body, `href="/stuck?x=1"`) || strings.Contains(body, "http-equiv") {
		t.Errorf("%s\n%s", res.Status, body)
	}
	if strings.Contains(body, "first-byte") {
		t.Errorf("a member is told of the owner's command line:\n%s", body)
	}
	if _, body := r.signedIn("notes", ownerID, true).get(origin + "/stuck"); !strings.Contains(body, "porchlight options notes --first-byte 300") {
		t.Errorf("the owner is not told what has the page wait longer:\n%s", body)
	}
	<-asked
	type answer struct {
		path string
		body string
		code int
	}
	got := make(chan answer, 3)
	ask := func(path string, headers ...string) {
		req := b.request("GET", origin+path, nil, headers...)
		b.addCookies(req)
		go func() {
			res, err := b.client.Do(req)
			if err != nil {
				got <- answer{path, err.Error(), 0}
				return
			}
			defer res.Body.Close()
			body, _ := io.ReadAll(res.Body)
			got <- answer{path, string(body), res.StatusCode}
		}()
	}
	ask("/poll", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty")
	ask("/curl")
	ask("/early", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")
	for range 3 {
		<-asked
	}
	// Another page's patience runs out meanwhile: theirs would have too.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req := b.request("GET", origin+"/stuck", nil, "Sec-Fetch-Mode", "navigate").WithContext(ctx)
	if res, _ := b.read(req); res.StatusCode != 504 {
		t.Errorf("%s", res.Status)
	}
	close(release)
	for range 3 {
		if a := <-got; a.code != 200 || a.body != "late" {
			t.Errorf("%s: %d %q", a.path, a.code, a.body)
		}
	}
}

// An app that its owner gave longer is waited for while others are given up.
func TestFirstByteIsAnAppsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *proxy.Config) { c.Patience = 3 * time.Second }) // what comes at once comes within that
	release, asked := make(chan struct{}), make(chan struct{}, 10)
	slow := func(w http.ResponseWriter, req *http.Request) {
		asked <- struct{}{}
		select {
		case <-release:
		case <-req.Context().Done():
		}
		io.WriteString(w, "the report")
	}
	r.app("notes", slow)
	r.change("notes", func(a *engine.App) { a.Options.FirstByte = agentapi.MaxFirstByte })
	b := r.signedIn("notes", bobID, true)
	got := make(chan string, 1)
	req := b.request("GET", origin+"/report", nil, "Sec-Fetch-Mode", "navigate", "Accept", "text/html")
	b.addCookies(req)
	go func() {
		res, err := b.client.Do(req)
		if err != nil {
			got <- err.Error()
			return
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		got <- fmt.Sprint(res.StatusCode, " ", string(body), " ", err)
	}()
	<-asked
	// The one patience runs out after the other has begun, and would have as well.
	r.change("notes", func(a *engine.App) { a.Options.FirstByte = 0 })
	b.gets(504, "without the option", origin+"/report")
	close(release)
	if report := <-got; report != "200 the report <nil>" {
		t.Errorf("with the option: %s", report)
	}
}

// A form sent without a session is not sent again: the visitor signs in and is
// on the page the form was on.
func TestFormsAreNotReplayed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var posts int
	r.app("notes", func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPost {
			posts++
		}
		hello(w, req)
	})
	for referer, want := range map[string]string{
		origin + "/edit?id=7":               origin + "/edit?id=7",
		origin:                              origin + "/",
		"":                                  origin + "/",
		"https://photos." + rootHost + "/x": origin + "/",
		origin + ".evil.test/x":             origin + "/",
		origin + "//evil.test":              origin + "/",
		origin + "/.porchlight/sign-out":    origin + "/",
		origin + "@evil.test/":              origin + "/",
	} {
		b := r.browser(false)
		res, _ := b.read(b.request("POST", origin+"/save?draft=1", strings.NewReader("text=x"), "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document",
			"Origin", origin, "Referer", referer, "Content-Type", "application/x-www-form-urlencoded"))
		if res.StatusCode != http.StatusSeeOther {
			t.Fatalf("%q: %s", referer, res.Status)
		}
		res, _ = b.get(r.issue(res.Header.Get("Location"), bobID))
		if got := res.Header.Get("Location"); got != want {
			t.Errorf("from %q back to %q, want %q", referer, got, want)
		}
	}
	if posts != 0 {
		t.Errorf("%d forms reached the app", posts)
	}
}

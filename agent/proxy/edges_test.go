package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// Over HTTP/2 a length promises so many bytes, which an answer without a body does not
// keep: browsers took such a 204 for broken off.
func TestAnswersWithoutABodyHaveNoLength(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	app, port := newTalker(t)
	r.publish("notes", port)
	for _, status := range []string{"204 No Content", "304 Not Modified"} {
		app.say("HTTP/1.1 "+status+"\r\nContent-Length: 5\r\nX-Mine: yes\r\n\r\n", stays)
		for _, http2 := range []bool{false, true} {
			b := r.signedIn("notes", bobID, http2)
			for _, method := range []string{"GET", "POST", "HEAD"} {
				res, body := b.fetch(method, origin+"/", "Origin", origin)
				if res.Status != status || body != "" || res.Header.Get("X-Mine") != "yes" || res.Header["Content-Length"] != nil {
					t.Errorf("http2=%v: %s: %s %v %q", http2, method, res.Status, res.Header, body)
				}
			}
		}
	}
}

// One field of 70 kB over HTTP/2 is 431 on its stream, and the connection goes on.
func TestOneLongFieldKeepsTheConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn("notes", bobID, true)
	b.heedless()
	b.get(origin + "/")
	var reused bool
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
	for _, c := range []struct{ length, status int }{{60_000, 200}, {70_000, 431}, {100_000, 431}, {250_000, 431}, {10, 200}} {
		req := b.request("GET", origin+"/", nil, "X-Mine", strings.Repeat("x", c.length))
		res, body := b.read(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
		if res.StatusCode != c.status || !reused {
			t.Errorf("a field of %d: %s, on the same connection: %v\n%.200s", c.length, res.Status, reused, body)
		}
	}
}

// curl, on whose library many programs stand, gets such an answer too: to what it sends of a
// known length and of an unknown one, over both.
func TestEarlyAnswersReachCurl(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("no curl")
	}
	r := newRig(t)
	r.publish("notes", rawApp(t, tooLargeApp))
	b := r.signedIn("notes", bobID, true)
	file := filepath.Join(t.TempDir(), "upload")
	programs.Must(t, os.WriteFile(file, make([]byte, 50<<20), 0o600))
	for _, way := range []string{"--http2", "--http1.1"} {
		for _, framing := range []string{"X-Its: length", "Transfer-Encoding: chunked"} {
			out, err := exec.CommandContext(t.Context(), curl, "-ksS", way, "-m", "60", "--noproxy", "*", "--connect-to", "::"+r.addr, "-b", cookie+"="+b.cookies[cookie],
				"-H", "Origin: "+origin, "-H", framing, "--data-binary", "@"+file, "-w", " %{http_code}", origin+"/").CombinedOutput()
			if err != nil || string(out) != "too large 413" {
				t.Errorf("%s, %s: %v %s", way, framing, err, out)
			}
		}
	}
}

// tooLargeApp answers before it has read a body, and closes with a reset: much is unread.
func tooLargeApp(c net.Conn) {
	if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
		io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large")
	}
}

// An app that finds an upload too large answers before it has read it, and closes. Its
// answer is the visitor's, whoever notices first: 12 of 120 were a 502.
func TestEarlyAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.publish("notes", rawApp(t, tooLargeApp))
	upload := strings.Repeat("x", 4<<20)
	b := r.signedIn("notes", bobID, true)
	for i := range 60 {
		var body io.Reader = strings.NewReader(upload)
		if i%2 == 0 {
			body = io.MultiReader(body) // of unknown length
		}
		req := b.request("POST", origin+"/", body, "Origin", origin)
		if i%4 < 2 {
			req.Header.Set("Te", "trailers") // by net/http to the app
		}
		res, text := b.read(req)
		if res.StatusCode != 413 || text != "too large" {
			t.Fatalf("upload %d: %s %s", i, res.Status, text)
		}
	}
}

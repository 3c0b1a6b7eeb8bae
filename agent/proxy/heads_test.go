package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"porchlight/agent/engine"
)

// many are header lines of fields that no app knows.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "X-Filler-%d: v\r\n", i)
	}
	return b.String()
}

const fiveLines = "\r\nX-Service-User: acc-bob\r\nX-Service-Email: bob@example.com\r\nX-Service-Name: maya\r\nX-Service-App: Notes\r\nX-Service-Role: member\r\n"

// Weakness: apps stop reading a head after some number of fields, Node after a
// thousand, and say nothing; what we add was somewhere among the visitor's.
// Attack: a signed-in visitor sends many fields of names that sort before ours.
// Checked: Host and the five come first, in their order, on every way out: plain,
// with a body, with one of unknown length, with a kept connection, as a WebSocket.
func TestTheFiveComeFirst(t *testing.T) {
	t.Parallel()
	r, b, rec := recordedVisitor(t, false)
	signed := "Host: " + sni + "\r\nCookie: " + cookie + "=" + b.cookies[cookie] + "\r\n" + many(150)
	for what, request := range map[string]string{
		"GET":       "GET / HTTP/1.1\r\n" + signed + "\r\n",
		"POST":      "POST / HTTP/1.1\r\n" + signed + "Content-Length: 2\r\n\r\nhi",
		"chunked":   "POST / HTTP/1.1\r\n" + signed + "Transfer-Encoding: chunked\r\nTrailer: X-Late\r\n\r\n2\r\nhi\r\n0\r\nX-Late: y\r\n\r\n",
		"empty":     "PUT / HTTP/1.1\r\n" + signed + "\r\n",
		"WebSocket": "GET / HTTP/1.1\r\n" + signed + "Connection: Upgrade\r\nUpgrade: websocket\r\nOrigin: https://" + sni + "\r\n\r\n",
		"long path": "POST /" + strings.Repeat("p", 40<<10) + " HTTP/1.1\r\n" + signed + "Content-Length: 2\r\n\r\nhi",
	} {
		before := len(rec.requests())
		res, err := http.ReadResponse(bufio.NewReader(r.raw(sni, request)), nil)
		if err != nil || res.StatusCode != 200 {
			t.Errorf("%s: %v %v", what, res, err)
			continue
		}
		got := rec.requests()[before]
		line, rest, _ := strings.Cut(got, "\r\n")
		if !strings.HasPrefix(rest, "Host: "+sni+fiveLines) || strings.Count(got, "X-Service-") != 5 || strings.Count(got, "X-Filler-") != 150 {
			t.Errorf("%s: the app received %.60q %.300q", what, line, rest)
		}
	}
}

// A connection that is used again, by what may go out twice and does not go directly,
// says who asks of each request anew.
func TestTheFiveOnKeptConnections(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.app("notes", func(w http.ResponseWriter, req *http.Request) {
		io.Copy(io.Discard, req.Body)
		fmt.Fprint(w, req.RemoteAddr, " ", req.Header.Get("X-Service-Email"), " ", req.Header.Get("X-Service-Role"))
	})
	seen := map[string]bool{}
	for range 3 {
		for id, want := range map[string]string{bobID: "bob@example.com member", ownerID: "maya@example.com owner"} {
			b := r.signedIn("notes", id, true)
			_, body := b.read(b.request("OPTIONS", origin+"/", nil))
			from, who, _ := strings.Cut(body, " ")
			if seen[from] = true; who != want {
				t.Errorf("%q, want %q", body, want)
			}
		}
	}
	if len(seen) > 4 {
		t.Errorf("%d connections: none was kept", len(seen))
	}
}

// The bound of fields, to the field, in both protocols; trailers count. Beyond it
// a program gets a sentence and a browser a page, and the app nothing at all.
func TestFieldBound(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		r := newRig(t)
		reached := make(chan int, 100)
		r.app("notes", func(w http.ResponseWriter, req *http.Request) {
			if _, err := io.Copy(io.Discard, req.Body); err == nil {
				reached <- len(req.Trailer)
			}
		})
		b := r.signedIn("notes", bobID, http2)
		if http2 {
			b.heedless()
		}
		// ask sends n fields in all: what the client adds is Host, User-Agent,
		// Accept-Encoding where it may, Cookie, and for a body its framing.
		ask := func(method string, n int, trailers int, header ...string) (*http.Response, string) {
			t.Helper()
			var body io.Reader
			if method == "POST" {
				body = io.MultiReader(strings.NewReader("hi")) // of unknown length
			}
			req := b.request(method, origin+"/", body, append(header, "User-Agent", "test")...)
			added := 3 + len(header)/2 // Host, User-Agent, Cookie
			if method == "POST" {
				if !http2 {
					added++ // Transfer-Encoding
				}
				added += 1 + trailers // Trailer
				req.Trailer = http.Header{}
				for i := range trailers {
					req.Trailer.Set(fmt.Sprintf("X-Late-%d", i), "v")
				}
			}
			for i := range n - added {
				req.Header.Set(fmt.Sprintf("X-Filler-%d", i), "v")
			}
			return b.read(req)
		}
		for n, want := range map[int]int{199: 200, 200: 200, 201: 431, 1500: 431} {
			if res, body := ask("GET", n, 0); res.StatusCode != want || !http2 && res.Close != (want == 431) {
				t.Errorf("http2=%v: GET with %d: %s %s", http2, n, res.Status, body)
			}
			if !http2 && n > 1000 {
				continue // the connection may end before the client has sent it all: see TestLongHeads
			}
			if res, body := ask("POST", n, 3); res.StatusCode != want || !http2 && res.Close != (want == 431) {
				t.Errorf("http2=%v: POST with %d: %s %s", http2, n, res.Status, body)
			}
		}
		for range 4 {
			<-reached
		}
		res, body := ask("GET", 300, 0)
		if res.Header.Get("Content-Type") != "application/json" || !strings.Contains(body, "200 header fields") {
			t.Errorf("http2=%v: %v %s", http2, res.Header, body)
		}
		res, body = ask("GET", 300, 0, "Accept", "text/html", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")
		if res.StatusCode != 431 || !strings.Contains(body, "<h1>This request is too large</h1>") || res.Header.Get("Clear-Site-Data") != "" {
			t.Errorf("http2=%v: %s %v %s", http2, res.Status, res.Header, body)
		}
		b.gets(200, fmt.Sprintf("http2=%v: afterwards", http2), origin+"/")
		if len(reached) != 1 {
			t.Errorf("http2=%v: the app was reached %d times more", http2, len(reached)-1)
		}
	}
}

// What we tell an app of a visitor is not counted as the visitor's.
func TestFieldBoundIsTheVisitors(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		r := newRig(t)
		r.app("notes", func(w http.ResponseWriter, req *http.Request) { io.Copy(io.Discard, req.Body) })
		r.change("notes", func(a *engine.App) { a.Options.Forwarded = true })
		b := r.signedIn("notes", bobID, http2)
		for n, want := range map[int]int{195: 200, 196: 431} { // and Host, User-Agent, Cookie, the body's length, Accept-Encoding
			req := b.request("POST", origin+"/", strings.NewReader("hi"), "User-Agent", "test", "Accept-Encoding", "identity")
			for i := range n {
				req.Header.Set(fmt.Sprintf("X-Filler-%d", i), "v")
			}
			if res, body := b.read(req); res.StatusCode != want {
				t.Errorf("http2=%v: %d: %s %s", http2, n, res.Status, body)
			}
		}
	}
}

// Too many cookies are deleted from a browser that loads a page, and from no other;
// never where something else makes the request too large.
func TestTooManyCookies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	navigate := []string{"Accept", "text/html", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	crumb := "a=" + strings.Repeat("x", 4000)
	for _, http2 := range []bool{false, true} {
		b := r.browser(http2)
		if http2 {
			b.heedless()
		}
		ask := func(path string, cookies, fields int, header ...string) (*http.Response, string) {
			req := b.request("GET", origin+path, nil, header...)
			req.Header.Set("Cookie", strings.Repeat(crumb+"; ", cookies)+"z=1")
			for i := range fields {
				req.Header.Set(fmt.Sprintf("A-%d", i), "v")
			}
			return b.read(req)
		}
		for _, c := range []struct {
			what            string
			path            string
			cookies, fields int
			header          []string
			cleared         bool
		}{
			{"a page", "/a?b", 30, 0, navigate, true},
			{"every cookie a browser holds of a site", "/a?b", 180, 0, navigate, true},
			{"an old browser's page", "/a?b", 30, 0, []string{"Accept", "text/html"}, true},
			{"a program", "/", 30, 0, nil, false},
			{"a frame", "/", 30, 0, []string{"Accept", "text/html", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, false},
			{"a script", "/", 30, 0, []string{"Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}, false},
			{"too many other fields", "/", 30, 300, navigate, false},
			{"too long an address and some cookies", "/" + strings.Repeat("p", 60<<10), 2, 0, navigate, false},
			{"too long an address", "/" + strings.Repeat("p", 70<<10), 30, 0, navigate, false},
		} {
			res, body := ask(c.path, c.cookies, c.fields, c.header...)
			if res.StatusCode != 431 || (res.Header.Get("Clear-Site-Data") == `"cookies"`) != c.cleared || !c.cleared && res.Header["Clear-Site-Data"] != nil {
				t.Errorf("http2=%v: %s: %s %v", http2, c.what, res.Status, res.Header)
			}
			if c.cleared && (!strings.Contains(body, "<h1>There were too many cookies</h1>") || !strings.Contains(body, `href="/a?b">Reload`)) {
				t.Errorf("http2=%v: %s: %s", http2, c.what, body)
			}
		}
	}
}

// A head that is too large over HTTP/1.1 is answered wherever it comes to be, and
// what a browser wants is still seen when it says so after its cookies.
func TestLongHeads(t *testing.T) {
	t.Parallel()
	r, b, rec := recordedVisitor(t, false)
	host := "Host: " + sni + "\r\n"
	signed := host + "Cookie: " + cookie + "=" + b.cookies[cookie] + "\r\n"
	long := strings.Repeat("x", 80<<10)
	ask := func(head string) string {
		c := r.raw(sni, "")
		go io.WriteString(c, head) // may fail: answered already
		answer, _ := io.ReadAll(c)
		return string(answer)
	}
	for what, head := range map[string]string{
		"in a value":          "GET / HTTP/1.1\r\n" + signed + "X: " + long + "\r\n\r\n",
		"in a name":           "GET / HTTP/1.1\r\n" + signed + long + ": x\r\n\r\n",
		"in the request line": "GET /" + long + " HTTP/1.1\r\n" + host + "\r\n",
		"Host comes last":     "GET /" + long + " HTTP/1.1\r\nX: x\r\n" + host + "\r\n",
		"a body":              "POST / HTTP/1.1\r\n" + signed + "Content-Length: 2\r\n" + many(300) + "\r\nhi",
		"a second request":    "GET / HTTP/1.1\r\n" + signed + many(300) + "\r\nGET /second HTTP/1.1\r\n" + signed + "\r\n",
		"a forged end":        "GET / HTTP/1.1\r\n" + signed + "X-Service-Too-Long: x\r\n" + many(300) + "X-Service-Too-Long: x\r\n\r\n",
		"more than is read":   "GET / HTTP/1.1\r\n" + signed + strings.Repeat("X: "+long+"\r\n", 20) + "\r\n",
	} {
		if answer := ask(head); !strings.HasPrefix(answer, "HTTP/1.1 431 ") || strings.Count(answer, "HTTP/1.1 ") != 1 || !strings.Contains(answer, "200 header fields") {
			t.Errorf("%s: %.300q", what, answer)
		}
	}
	// Cut off in the middle of a length, it is none.
	for at := range 36 {
		head := "POST / HTTP/1.1\r\n" + signed
		head += "X: " + long[:64<<10-len(head)-len("X: \r\n")-at] + "\r\nContent-Length: 111111111111111111\r\n" + many(9) + "\r\n"
		if answer := ask(head + "hi"); !strings.HasPrefix(answer, "HTTP/1.1 4") || strings.Count(answer, "HTTP/1.1 ") != 1 {
			t.Errorf("in a length, %d: %.300q", at, answer)
		}
	}
	for what, head := range map[string]string{
		"a bare LF":  "GET / HTTP/1.1\r\n" + signed + many(300) + "X: y\n\r\n",
		"folded":     "GET / HTTP/1.1\r\n" + signed + many(300) + " X: y\r\n\r\n",
		"two bodies": "POST / HTTP/1.1\r\n" + signed + "Content-Length: 2\r\n" + many(300) + "Transfer-Encoding: chunked\r\n\r\n",
	} {
		if answer := ask(head); !strings.HasPrefix(answer, "HTTP/1.1 400 ") {
			t.Errorf("%s: %.300q", what, answer)
		}
	}
	if got := rec.requests(); len(got) != 0 {
		t.Errorf("the app received %.300q", got)
	}
	// 32 KiB of other cookies are the app's business.
	if answer := ask("GET / HTTP/1.1\r\n" + host + "Cookie: " + strings.Repeat("a=b; ", 6500) + cookie + "=" + b.cookies[cookie] + "\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
		t.Errorf("many cookies: %.300q", answer)
	}
	firefox := ask("GET / HTTP/1.1\r\n" + host + "Cookie: " + long + "\r\nSec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\n\r\n")
	if !strings.Contains(firefox, "Clear-Site-Data: \"cookies\"\r\n") || !strings.Contains(firefox, "<h1>There were too many cookies</h1>") {
		t.Errorf("%.600q", firefox)
	}
	frame := ask("GET / HTTP/1.1\r\n" + host + "Accept: text/html\r\nCookie: " + long + "\r\nSec-Fetch-Dest: iframe\r\nSec-Fetch-Mode: navigate\r\n\r\n")
	if strings.Contains(frame, "Clear-Site-Data") || !strings.HasPrefix(frame, "HTTP/1.1 431 ") {
		t.Errorf("%.600q", frame)
	}
	// A request before it on the connection is answered as it deserves; so is a
	// visitor's own field of that name alone.
	both := ask("GET / HTTP/1.1\r\n" + host + "X-Service-Too-Long: x\r\n\r\nGET / HTTP/1.1\r\n" + host + many(300) + "\r\n")
	if !strings.HasPrefix(both, "HTTP/1.1 401 ") || strings.Count(both, "HTTP/1.1 431 ") != 1 {
		t.Errorf("%.900q", both)
	}
}

// However a visitor spells the Host, the app gets the public one.
func TestHostIsNormalised(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rec := newRecorder(t)
	r.publish("notes", rec.port)
	r.change("notes", func(app *engine.App) { app.Options.Forwarded = true })
	b := r.signedIn("notes", bobID, false)
	for _, host := range []string{sni, sni + ":", sni + ":443", "NOTES." + strings.ToUpper(rootHost), "Notes." + rootHost + ":"} {
		for _, method := range []string{"GET", "DELETE"} {
			before := len(rec.requests())
			res, err := http.ReadResponse(bufio.NewReader(r.raw(sni, method+" / HTTP/1.1\r\nHost: "+host+"\r\nCookie: "+cookie+"="+b.cookies[cookie]+"\r\n\r\n")), nil)
			if err != nil || res.StatusCode != 200 {
				t.Errorf("%s %s: %v %v", method, host, res, err)
				continue
			}
			got := rec.requests()[before]
			if !strings.Contains(got, "\r\nHost: "+sni+"\r\n") || !strings.Contains(got, "\r\nX-Forwarded-Host: "+sni+"\r\n") {
				t.Errorf("%s %s: the app received %q", method, host, got)
			}
		}
	}
	res, err := http.ReadResponse(bufio.NewReader(r.raw(sni, "GET / HTTP/1.1\r\nHost: "+sni+".\r\n\r\n")), nil)
	if err != nil || res.StatusCode != 421 {
		t.Errorf("with a dot at its end: %v %v", res, err)
	}
}

package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/agent/engine"
)

// "Te: trailers" has a request go by the ReverseProxy, which is how these tests have
// the same thing done in both ways.
const reverseHeader = "Te"

// TestDirectRequestsAreTheSame sends what can go both ways: the app gets
// the same bytes, but for the order of the fields.
func TestDirectRequestsAreTheSame(t *testing.T) {
	t.Parallel()
	r, b, rec := recordedVisitor(t, false)
	session := "Cookie: " + cookie + "=" + b.cookies[cookie]
	seen := 0
	last := func() string {
		within(t, "the app gets the request", func() bool { return len(rec.requests()) > seen })
		seen++
		return rec.requests()[seen-1]
	}
	for _, lines := range [][]string{
		{"GET / HTTP/1.1"},
		{"HEAD /x HTTP/1.1"},
		{"GET /a%2fb/%20?q=%zz;x=1&&=%00 HTTP/1.1", "Accept: */*"},
		{"GET /? HTTP/1.1"},
		{"GET /a//b/../c HTTP/1.1", "User-Agent: curl"},
		{"GET / HTTP/1.1", "User-Agent:"},
		{"GET / HTTP/1.1", "Content-Length: 0"},
		{"GET / HTTP/1.1", "X-Service-User: root", "x_service_email: root", "Remote-User: root", "X-Forwarded-For: 1.1.1.1"},
		{"GET / HTTP/1.1", "Connection: keep-alive, X-Service-User, x-mine", "X-Mine: 1", "Keep-Alive: 5", "Proxy-Connection: x"},
		{"GET / HTTP/1.1", "Connection: Cookie"},
		{"GET / HTTP/1.1", "Cookie: a=b; __Host-porchlight-ffffffff=secret; c=d", "Cookie: e=f"},
		{"GET / HTTP/1.1", "Authorization: Bearer mine", "Authorization: Basic eA=="},
		{"GET / HTTP/1.1", "Accept: a", "accept: b", "X-Empty:", "X-Odd: \tä ö\t"},
		{"GET / HTTP/1.1", "Proxy: x", "Trailer: X-T", "If-None-Match: \"x\"", "Range: bytes=0-1"},
		{"OPTIONS * HTTP/1.1"},
		{"OPTIONS / HTTP/1.1", "Origin: https://x.example"},
		{"DELETE /x HTTP/1.1"},
		{"PROPFIND /x HTTP/1.1", "Depth: 1", "Content-Length: 3", "", "a=b"},
		{"POST / HTTP/1.1"},
		{"PUT / HTTP/1.1", "Content-Length: 0"},
		{"POST / HTTP/1.1", "Content-Length: 3", "Content-Type: text/plain", "Idempotency-Key: x", "", "a=b"},
		{"PATCH / HTTP/1.1", "Content-Length: 70000", "X-Service-User: root", "", strings.Repeat("0123456789", 7000)},
		{"GET / HTTP/1.1", "Content-Length: 3", "", "a=b"},
		{"DELETE / HTTP/1.1", "Transfer-Encoding: chunked", "", "3\r\na=b\r\n2;x=y\r\n&c\r\n0\r\n\r\n"},
		{"POST / HTTP/1.1", "Transfer-Encoding: chunked", "", "0\r\n\r\n"},
		{"POST / HTTP/1.1", "Transfer-Encoding: chunked", "", "1\r\na\r\n0\r\nX-Service-User: root\r\nX-Late: 1\r\n\r\n"},
	} {
		head, body := lines, ""
		if i := slices.Index(lines, ""); i > 0 {
			head, body = lines[:i], lines[i+1]
		}
		send := func(extra ...string) {
			all := append(append(slices.Clone(head), "Host: notes."+rootHost, session), extra...)
			c := r.raw(sni, strings.Join(append(all, "", body), "\r\n"))
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || res.StatusCode != 200 {
				t.Fatalf("%q: %v %v", lines, res, err)
			}
			c.Close()
		}
		send()
		direct := last()
		send(reverseHeader + ": trailers")
		reversed := strings.Replace(last(), reverseHeader+": trailers\r\n", "", 1)
		if got, want := plainly(t, direct), plainly(t, reversed); got != want {
			t.Errorf("%q came as\n%s\nand by the ReverseProxy as\n%s", lines, got, want)
		}
	}
}

// TestConnectionTakesNothingOfOurs: a visitor who calls what the proxy tells the app
// a matter of the connection (RFC 9110, section 7.6.1) does not keep it from the app.
func TestConnectionTakesNothingOfOurs(t *testing.T) {
	t.Parallel()
	r, b, rec := recordedVisitor(t, false)
	r.change("notes", func(a *engine.App) { a.Options.IdentityHeader, a.Options.Forwarded = "X-My-App-Login", true })
	ours := []string{"X-Service-User", "X-Service-Email", "X-Service-Role", "X-My-App-Login", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"}
	for i, way := range []string{"X-Direct", reverseHeader} {
		c := r.raw(sni, strings.Join([]string{
			"GET / HTTP/1.1", "Host: notes." + rootHost, "Cookie: " + cookie + "=" + b.cookies[cookie],
			"Connection: " + strings.Join(ours, ", "), way + ": trailers", "", "",
		}, "\r\n"))
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%s: %v %v", way, res, err)
		}
		c.Close()
		within(t, "the app gets the request", func() bool { return len(rec.requests()) > i })
		for _, name := range ours {
			if request := rec.requests()[i]; strings.Count(request, "\r\n"+name+": ") != 1 {
				t.Errorf("%s: %s is not there once:\n%s", way, name, request)
			}
		}
	}
}

// plainly is a request with its fields in order, and its body without the ends of chunks.
func plainly(t *testing.T, request string) string {
	t.Helper()
	head, _, _ := strings.Cut(request, "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	slices.Sort(lines[1:])
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(request)))
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	body, err := io.ReadAll(req.Body)
	return fmt.Sprint(strings.Join(lines, "\n"), "\n\n", string(body), req.Trailer, err)
}

// scripted is an app that answers request number n on a connection with what
// answer returns, as it is, and closes the connection for ok false.
func scripted(t testing.TB, answer func(n int, req *http.Request, c net.Conn) (ok bool)) (port int, conns *atomic.Int64) {
	conns = new(atomic.Int64)
	return rawApp(t, func(c net.Conn) {
		conns.Add(1)
		c.SetDeadline(time.Now().Add(20 * time.Second))
		br := bufio.NewReader(c)
		for n := 0; ; n++ {
			req, err := http.ReadRequest(br)
			if err != nil || !answer(n, req, c) {
				return
			}
		}
	}), conns
}

var answers = []string{
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\nConnection: close, X-Gone\r\nX-Gone: 1\r\n\r\nok",
	"HTTP/1.0 200 OK\r\n\r\nuntil the end",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n3;x=y\r\nabc\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Late: 1\r\n\r\n",
	"HTTP/1.1 204 No Content\r\n\r\n",
	"HTTP/1.1 304 Not Modified\r\nEtag: \"x\"\r\n\r\n",
	"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
	"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
	"HTTP/1.1 404 Not Found\r\nSet-Cookie: a=b; Domain=porch.test\r\nSet-Cookie: c=d\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",                                      // half
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",                    // half
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",                 // two lengths
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: gzip, chunked\r\n\r\nok",  // unknown
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok, and more than was said",              // too much
	"HTTP/1.1 200 OK\r\nX-Service-User: x\r\nContent-Type: \r\nContent-Length: 0\r\n\r\n", // an empty type
	"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 000 OK\r\n\r\n", "SSH-2.0-x\r\n", "", "HTTP/1.1 200 OK\r\nbroken",
	"HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 300<<10) + "\r\n\r\n",
}

// broken is an answer that does not look whole. How much of it comes before its
// end, the head included, is chance with the ReverseProxy.
const broken = "broken"

// outcome is what a visitor sees of an answer.
func outcome(b *browser, method string, header ...string) string {
	var sent io.Reader
	if method == "POST" {
		sent = strings.NewReader("a=b")
	}
	req, err := http.NewRequest(method, origin+"/", sent)
	if err != nil {
		return err.Error()
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	req.Header.Set("Cookie", cookie+"="+b.cookies[cookie])
	res, err := b.client.Do(req)
	if err != nil {
		return broken
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	res.Header.Del("Date")
	if res.Header.Get("Content-Length") == "" && res.ContentLength >= 0 {
		res.ContentLength = -1 // how an answer of unknown length is framed may differ
	}
	if err != nil {
		return broken
	}
	res.Header.Del("Content-Length")
	return fmt.Sprint(res.StatusCode, res.Header, res.Trailer, string(body))
}

// outcomes are those of both ways. The ReverseProxy's transport may send a request on the connection
// of the answer before, which said too much, before it has seen that, and takes the rest for the
// answer: so it is asked again where the two differ.
func outcomes(b *browser, method string) (direct, reversed string) {
	direct = outcome(b, method)
	for range 3 {
		if reversed = outcome(b, method, reverseHeader, "trailers"); reversed == direct {
			break
		}
	}
	return direct, reversed
}

// TestDirectAnswersAreTheSame has an app say all kinds of things; visitors of
// both ways see the same.
func TestDirectAnswersAreTheSame(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		r := newRig(t)
		var raw atomic.Pointer[string]
		port, _ := scripted(t, func(_ int, req *http.Request, c net.Conn) bool {
			io.Copy(io.Discard, req.Body) // else the connection ends with a reset
			io.WriteString(c, *raw.Load())
			return false
		})
		r.publish("notes", port)
		b := r.signedIn("notes", bobID, http2)
		for _, answer := range answers {
			raw.Store(&answer)
			for _, method := range []string{"GET", "HEAD", "POST"} {
				if direct, reversed := outcomes(b, method); direct != reversed {
					t.Errorf("HTTP/2 %v, %s, %.200q is\n%.500s\nand by the ReverseProxy\n%.500s", http2, method, answer, direct, reversed)
				}
			}
		}
	}
}

// FuzzDirectAnswer looks for something an app can say that the two ways hand on
// differently.
func FuzzDirectAnswer(f *testing.F) {
	for _, answer := range answers {
		f.Add(answer)
	}
	r := newRig(f)
	var raw atomic.Pointer[string]
	port, _ := scripted(f, func(_ int, req *http.Request, c net.Conn) bool {
		io.Copy(io.Discard, req.Body)
		io.WriteString(c, *raw.Load())
		return false
	})
	r.publish("notes", port)
	b := r.signedIn("notes", bobID, false)
	f.Fuzz(func(t *testing.T, answer string) {
		raw.Store(&answer)
		for _, method := range []string{"GET", "POST"} {
			if direct, reversed := outcomes(b, method); direct != reversed {
				t.Fatalf("%s: %q is\n%s\nand by the ReverseProxy\n%s", method, answer, direct, reversed)
			}
		}
	})
}

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// wayApp is an app that keeps what it was asked and answers as the path says.
type wayApp struct {
	port int

	mu  sync.Mutex
	got []*appRequest // guarded by mu
}

// appRequest is a request as an app reads it.
type appRequest struct {
	line, body string
	fields     []string // sorted; the app need not know in which order they came
	five       string   // the lines right after Host
	whole      bool     // its end came; whether the app saw the beginning of another is a matter of time
}

func (r appRequest) String() string {
	return r.line + "|" + r.five + "|" + strings.Join(r.fields, "|") + "||" + r.body
}

func newWayApp(t testing.TB) *wayApp {
	a := &wayApp{}
	a.port = rawApp(t, a.serve)
	return a
}

// take is what came since it was taken last.
func (a *wayApp) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() { a.got = nil }()
	return a.whole()
}

// seen is what take would be now.
func (a *wayApp) seen() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.whole()
}

// whole are the requests that came to their end. mu is held.
func (a *wayApp) whole() (all []string) {
	for _, r := range a.got {
		if r.whole {
			all = append(all, r.String())
		}
	}
	return all
}

func (a *wayApp) serve(c net.Conn) {
	r := bufio.NewReader(c)
	for {
		got, err := a.read(r)
		if got.line == "" || err != nil {
			return
		}
		_, port, _ := net.SplitHostPort(c.LocalAddr().String())
		answer, last := appAnswer(got, port)
		if _, err := io.WriteString(c, answer); err != nil || last {
			return
		}
	}
}

func (a *wayApp) read(r *bufio.Reader) (got *appRequest, err error) {
	got = &appRequest{}
	head, err := readHead(r)
	if err != nil {
		return got, err
	}
	got.line, got.five = head[0], strings.Join(head[1:min(7, len(head))], "|")
	got.fields = slices.Sorted(slices.Values(head[min(7, len(head)):]))
	a.mu.Lock()
	a.got = append(a.got, got)
	a.mu.Unlock()
	body, err := readFramed(r, got.fields, 0)
	a.mu.Lock()
	got.body, got.whole = body, err == nil
	a.mu.Unlock()
	return got, err
}

// readHead reads lines up to an empty one.
func readHead(r *bufio.Reader) (lines []string, err error) {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return lines, err
		}
		line = strings.TrimSuffix(line, "\r\n")
		if line == "" {
			return lines, nil
		}
		lines = append(lines, line)
	}
}

// readFramed reads a body, its trailers after it. What has no length has none, or, with
// the status of an answer, all that comes.
func readFramed(r *bufio.Reader, fields []string, status int) (body string, err error) {
	var raw []byte
	switch length := fieldOf(fields, "Content-Length"); {
	case strings.EqualFold(fieldOf(fields, "Transfer-Encoding"), "chunked"):
		if raw, err = io.ReadAll(httputil.NewChunkedReader(r)); err != nil {
			return string(raw), err
		}
		trailers, err := readHead(r)
		return string(raw) + "||" + strings.Join(slices.Sorted(slices.Values(trailers)), "|"), err
	case length != "":
		n, err := strconv.ParseInt(length, 10, 64)
		if err != nil {
			return "", err
		}
		if raw, err = io.ReadAll(io.LimitReader(r, n)); err == nil && int64(len(raw)) < n {
			err = io.ErrUnexpectedEOF
		}
		return string(raw), err
	case status > 0:
		raw, err = io.ReadAll(r)
	}
	return string(raw), err
}

func fieldOf(fields []string, name string) string {
	for _, f := range fields {
		if n, value, _ := strings.Cut(f, ":"); strings.EqualFold(n, name) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// appAnswer is the same for the same request, but for the app's port where it is asked for
// one of outward. last says that the connection ends.
func appAnswer(r *appRequest, port string) (answer string, last bool) {
	method, target, _ := strings.Cut(r.line, " ")
	head := func(status, more string) string {
		return "HTTP/1.1 " + status + "\r\nContent-Type: text/plain\r\n" + more + "\r\n"
	}
	said := r.line + "\n" + r.body
	if method == http.MethodHead {
		return head("200 OK", "Content-Length: 77\r\n"), false
	}
	path, _, _ := strings.Cut(target, " ")
	kind := strings.TrimRight(path, "0123456789")
	switch kind {
	case "/says":
		if n, err := strconv.Atoi(path[len(kind):]); err == nil && n < len(outward) {
			return head("201 Created", outward[n].field+": "+strings.ReplaceAll(outward[n].says, "PORT", port)+"\r\nContent-Length: 0\r\n"), false
		}
	case "/none":
		return head("204 No Content", "X-A: 1\r\nX-A: 2\r\n"), false
	case "/same":
		return head("304 Not Modified", "Etag: \"x\"\r\n"), false
	case "/chunks":
		return head("200 OK", "Transfer-Encoding: chunked\r\nTrailer: X-End\r\n") + "3\r\nabc\r\n2\r\nde\r\n0\r\nX-End: yes\r\n\r\n", false
	case "/hints":
		return "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n" + head("200 OK", "Content-Length: 2\r\n") + "ok", false
	case "/long":
		return head("200 OK", "Content-Length: 100000\r\n") + strings.Repeat("0123456789", 10_000), false
	case "/rest":
		return head("200 OK", "Connection: close\r\n") + said, true
	case "/half":
		return head("200 OK", "Content-Length: 50\r\n") + "half", true
	case "/odd":
		return "HTTP/1.1 299 \r\nx-lower: A\r\nSet-Cookie: a=b\r\nSet-Cookie: " + cookie + "=x\r\nConnection: X-Hop\r\nX-Hop: 1\r\nContent-Length: 0\r\n\r\n", false
	}
	return head("200 OK", "Content-Length: "+strconv.Itoa(len(said))+"\r\n") + said, false
}

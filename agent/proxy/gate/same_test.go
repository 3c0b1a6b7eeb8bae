package gate_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"porchlight/agent/proxy/gate"
)

// The same bytes mean the same on both ways: to the handler, and to the visitor.

// outcome is what came of a visitor's bytes.
type outcome struct {
	handled []string // what the handler was given, request by request
	answers []answer
	kept    bool
}

// fates are answers a handler gives, by path.
var fates = map[string]http.HandlerFunc{
	"/":       func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "fine") },
	"/none":   func(w http.ResponseWriter, r *http.Request) {},
	"/length": func(w http.ResponseWriter, r *http.Request) { sized(w, 5000); io.WriteString(w, long[:5000]) },
	"/pieces": func(w http.ResponseWriter, r *http.Request) {
		sized(w, 100_000)
		for i := range 100 {
			io.WriteString(w, long[i:i+1000])
		}
	},
	"/large":   func(w http.ResponseWriter, r *http.Request) { sized(w, len(long)); io.WriteString(w, long) },
	"/auto":    func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, long[:2048]) },
	"/chunked": func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, long[:2049]) },
	"/chunks": func(w http.ResponseWriter, r *http.Request) {
		for n := 1; n < len(long); n *= 3 {
			io.WriteString(w, long[:n])
			if n%2 == 0 {
				w.(http.Flusher).Flush()
			}
		}
		io.WriteString(w, long)
		io.WriteString(w, "end")
	},
	"/flushed": func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		io.WriteString(w, "a")
		w.(http.Flusher).Flush()
		io.WriteString(w, "b")
	},
	"/page": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "20")
		io.WriteString(w, "<!doctype")
		io.WriteString(w, " html><p>hi")
	},
	"/typeless": func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = nil
		io.WriteString(w, "<p>")
	},
	"/encoded": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		io.WriteString(w, "<p>")
	},
	"/204": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "3")
		w.WriteHeader(204)
		_, err := io.WriteString(w, "abc")
		w.Header().Set("X-Late", fmt.Sprint(err))
	},
	"/304": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "3")
		w.Header().Set("Content-Type", "a/b")
		w.Header().Set("Etag", `"x"`)
		w.WriteHeader(304)
	},
	"/799": func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(799); io.WriteString(w, "x") },
	"/interim": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a>")
		w.WriteHeader(103)
		w.WriteHeader(103)
		w.Header().Set("Other", "x")
		w.WriteHeader(201)
	},
	"/close": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		io.WriteString(w, "x")
	},
	"/odd": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "x-y")
		io.WriteString(w, "x")
	},
	"/short": func(w http.ResponseWriter, r *http.Request) { sized(w, 10); io.WriteString(w, "short") },
	"/beyond": func(w http.ResponseWriter, r *http.Request) {
		sized(w, 2)
		io.WriteString(w, "ab")
		io.WriteString(w, "c")
	},
	"/injected": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-A", " a\r\nX-B: b\n ")
		w.Header()["X-C: d\r\nX-E"] = []string{"f"}
		w.Header()["bad name"] = []string{"f"}
		w.Header()["Two"] = []string{"1", "2"}
		io.WriteString(w, "x")
	},
	"/dated": func(w http.ResponseWriter, r *http.Request) { w.Header()["Date"] = nil },
	"/trailers": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-After, Content-Length")
		io.WriteString(w, "body")
		w.Header().Set("X-After", "1")
		w.Header().Set(http.TrailerPrefix+"X-Unsaid", "2")
	},
	"/unsaid": func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "body")
		w.(http.Flusher).Flush()
		w.Header().Set(http.TrailerPrefix+"X-Unsaid", "2")
	},
	"/late": func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		w.Header().Set("X-Late", "1")
		w.WriteHeader(500)
		io.WriteString(w, "x")
	},
	"/unread":  func(w http.ResponseWriter, r *http.Request) { r.Body.Close(); io.WriteString(w, "x") },
	"/echo":    func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) },
	"/aborted": func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
	"/header": func(w http.ResponseWriter, r *http.Request) {
		for i := range 300 {
			w.Header().Set(fmt.Sprint("X-", i), long[:200])
		}
		io.WriteString(w, long[:3000])
	},
	"/first": func(w http.ResponseWriter, r *http.Request) { // answers before it has read
		http.NewResponseController(w).EnableFullDuplex()
		io.WriteString(w, "before")
		w.(http.Flusher).Flush()
		io.Copy(w, r.Body)
	},
}

var long = strings.Repeat("Forty-two bytes of text, again and again.\n", 2500)

func sized(w http.ResponseWriter, n int) { w.Header().Set("Content-Length", strconv.Itoa(n)) }

// outcomeOf sends bytes, in pieces, by one way.
func outcomeOf(t *testing.T, way string, pieces ...string) (o outcome) {
	t.Helper()
	onWay(t, way, letIn(func(w http.ResponseWriter, r *http.Request) {
		said := []string{
			r.Method, r.RequestURI, r.URL.String(), r.Proto, r.Host, r.RemoteAddr, r.TLS.ServerName, fmt.Sprint(r.TransferEncoding, r.ContentLength, r.Close),
			fmt.Sprintf("%#v", *r.URL), fmt.Sprint(r.Body == http.NoBody, r.Trailer == nil, gate.PathTarget(r)),
		}
		for _, name := range slices.Sorted(maps.Keys(r.Header)) {
			said = append(said, fmt.Sprintf("%s=%q", name, r.Header[name]))
		}
		o.handled = append(o.handled, strings.Join(said, " "))
		if over, _ := gate.TooLarge(r); over {
			w.Header().Set("Connection", "close")
			w.WriteHeader(431)
		} else if fate := fates[r.URL.Path]; fate != nil {
			fate(w, r)
		} else {
			body, err := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%q %v %v", body, err, r.Trailer)
		}
	}), func(h *house) {
		g := h.guest()
		for _, piece := range pieces {
			g.say(piece)
		}
		time.Sleep(time.Second)
		o.answers = answers(t, g.heard(), methods(pieces)...)
		select {
		case <-g.done:
		default:
			o.kept = true
		}
	})
	return o
}

// methods are those of the requests in the pieces, as well as needed to read answers.
func methods(pieces []string) (all []string) {
	for line := range strings.SplitSeq(strings.Join(pieces, ""), "\r\n") {
		if method, rest, ok := strings.Cut(line, " "); ok && strings.Contains(rest, " HTTP/") {
			all = append(all, method)
		}
	}
	return all
}

func compare(t *testing.T, pieces ...string) {
	t.Helper()
	own, theirs := outcomeOf(t, own, pieces...), outcomeOf(t, library, pieces...)
	if !reflect.DeepEqual(own, theirs) {
		t.Errorf("%.500q:\nown %s\ngo  %s", pieces, own, theirs)
	}
}

func (o outcome) String() string {
	return fmt.Sprintf("%.2000s", fmt.Sprintf("kept %v %+v\n    %q", o.kept, o.answers, o.handled))
}

// TestSameAnswers: whatever a handler does, its visitor gets the same by either way.
func TestSameAnswers(t *testing.T) {
	t.Parallel()
	for _, path := range slices.Sorted(maps.Keys(fates)) {
		compare(t, request("GET", path, "Connection: close"))
		compare(t, request("HEAD", path)+request("GET", path)+request("GET", "/"))
		compare(t, request("POST", path, "Content-Length: 4")+"bo", "dy", request("GET", "/"))
	}
}

// TestSameRequests: whatever a visitor sends, it means the same by either way.
func TestSameRequests(t *testing.T) {
	t.Parallel()
	const host = "Host: " + visited + "\r\n"
	for _, s := range []string{
		"GET /a?b=c&d HTTP/1.1\r\n" + host + "Accept: */*\r\naccept-language: de\r\nCookie: a=b\r\nCookie: c=d\r\n\r\n",
		"GET /%41%2f%zz? HTTP/1.1\r\n" + host + "\r\n",
		"GET /%41%2f? HTTP/1.1\r\n" + host + "\r\n",
		"GET //a//b?? HTTP/1.1\r\n" + host + "\r\n",
		"GET /a#b HTTP/1.1\r\n" + host + "\r\n",
		"GET /!('*)[]|\"<>^`{}\\ HTTP/1.1\r\n" + host + "\r\n",
		"GET / HTTP/1.1\r\nhost:" + visited + "\r\nX: \r\nY:  a \t\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\n" + host + "\r\n",
		"CONNECT a:1 HTTP/1.1\r\n" + host + "\r\n",
		"CONNECT /a HTTP/1.1\r\n" + host + "\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"get / HTTP/1.1\r\n" + host + "\r\n",
		"M-SEARCH / HTTP/1.1\r\n" + host + "\r\n",
		"GET / HTTP/1.0\r\n" + host + "\r\n",
		"GET / HTTP/1.0\r\n" + host + "Connection: keep-alive\r\n\r\n" + "GET / HTTP/1.0\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\n" + host + host + "\r\n",
		"GET http://other/a HTTP/1.1\r\n" + host + "\r\n",
		"GET / HTTP/1.1\n" + host + "\n",
		"GET / HTTP/1.1\r\n" + host + "X: a\nY: b\r\n\r\n",
		"GET / HTTP/1.1\r\n" + host + "X: a\rY: b\r\n\r\n",
		"GET / HTTP/1.1\r\n" + host + "X: a\r\n b\r\n\r\n",
		"GET / HTTP/1.1\r\n" + host + "X : a\r\n\r\n",
		"GET / HTTP/1.1\r\n" + host + "X: \xc3\xbc\r\n\r\n",
		"GET / HTTP/1.1\r\n" + host + "X: a\x00b\r\n\r\n",
		"GET / HTTP/1.1\r\n" + host + "X\x01: a\r\n\r\n",
		"GET / HTTP/1.1\r\n" + host + ": a\r\n\r\n",
		"GET / HTTP/1.1\r\n" + host + "Connection: close, keep-alive\r\n\r\n",
		"GET / HTTP/1.1\r\n" + host + "Connection: Close\r\n\r\n",
		"GET / HTTP/1.1\r\n" + host + "Connection: X-A\r\nX-A: b\r\n\r\n",
		"GET / HTTP/1.1\r\n" + host + "Pragma: no-cache\r\n\r\n",
		"GET /b HTTP/1.1\r\n" + host + "Content-Length: 3\r\n\r\nabc" + request("GET", "/"),
		"GET /b HTTP/1.1\r\n" + host + "Content-Length: 0\r\n\r\n" + request("GET", "/"),
		"GET /b HTTP/1.1\r\n" + host + "Content-Length: 03\r\n\r\nabc" + request("GET", "/"),
		"GET /b HTTP/1.1\r\n" + host + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
		"GET /b HTTP/1.1\r\n" + host + "Content-Length: 3, 3\r\n\r\nabc",
		"GET /b HTTP/1.1\r\n" + host + "Content-Length: -3\r\n\r\nabc",
		"POST /b HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n" + request("GET", "/"),
		"POST /b HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
		"POST /b HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip\r\n\r\n",
		"POST /b HTTP/1.1\r\n" + host + "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
		"POST /b HTTP/1.1\r\n" + host + "Expect: the worst\r\nContent-Length: 3\r\n\r\nabc",
		"POST /b HTTP/1.1\r\n" + host + "Content-Length: 3\r\n\r\nabc\r\n" + request("GET", "/"),
		"POST /b HTTP/1.1\r\n" + host + "Content-Length: 3\r\n\r\nabc\r\n\r\n" + request("GET", "/"),
		"POST /b HTTP/1.1\r\n" + host + "Content-Length: 3\r\n\r\nabc\r\n\r\n\r\n" + request("GET", "/"),
		"PUT /b HTTP/1.1\r\n" + host + "Content-Length: 3\r\n\r\nabc\r\n" + request("GET", "/"),
		"\r\n" + request("GET", "/"),
		request("GET", "/") + "\r\n" + request("GET", "/"),
		request("GET", "/", "X: "+strings.Repeat("a", 5000)) + request("GET", "/"),
		request("GET", "/", "X: "+strings.Repeat("a", 20_000)) + request("GET", "/"),
		request("GET", "/", "X: "+strings.Repeat("a", 70_000)) + request("GET", "/"),
		request("GET", "/", strings.Repeat("X: a\r\n", 99)+"Y: b") + request("GET", "/"),
		request("GET", "/", strings.Repeat("X: a\r\n", 198)+"Y: b") + request("GET", "/"),
		request("GET", "/", strings.Repeat("X: a\r\n", 199)+"Y: b") + request("GET", "/"),
		request("GET", "/"+strings.Repeat("a", 9000)) + request("GET", "/"),
		request("POST", "/b", "Content-Length: 30000") + long[:30_000] + request("GET", "/"),
		request("GET", "/", "Upgrade: websocket", "Connection: Upgrade") + request("GET", "/"),
		request("GET", "/", "Te: trailers", "Trailer: X") + request("GET", "/"),
		request("GET", "/", "X-Service-Too-Long: x") + request("GET", "/"),
	} {
		compare(t, s)
		compare(t, request("GET", "/"), s)
		compare(t, request("GET", "/")+s)
		for _, at := range []int{1, 17, len(s) - 1} {
			compare(t, s[:at], s[at:])
		}
	}
}

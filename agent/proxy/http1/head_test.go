package http1

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/net/http/httpguts"

	"porchlight/test/programs"
)

// heads that are plain, and heads that are not.
var plainHeads = []string{
	"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a/b;c=d@e?x=y&z HTTP/1.1\r\nHost: notes.maya.test:8443\r\nAccept: */*\r\naccept-language: de\r\nCookie: a=b\r\nCookie: c=d\r\nCookie: e=f\r\n\r\n",
	"GET /%41%2fb? HTTP/1.1\r\nhost: a\r\nConnection: Keep-Alive\r\n\r\n",
	"GET //x/y?a?b HTTP/1.1\r\nHost:a\r\nConnection:close\r\nX:\r\n\r\n",
	"GET /!('*)[]|\"<>^`{}\\ HTTP/1.1\r\nHost: a\r\nPragma: no-cache\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
	"DELETE /a HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 0\r\nX-y_z.1: a  b \r\n\r\n",
	"OPTIONS /a HTTP/1.1\r\nHost: A\r\nPragma: no-cache\r\nCache-Control: max-age=0\r\nUser-Agent: " + strings.Repeat("long ", 50) + "\r\n\r\n",
}

var oddHeads = []string{
	"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\n\r\n",
	"GET / HTTP/1.0\r\nHost: a\r\n\r\n",
	"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
	"get / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
	"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
	"CONNECT /a HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: \r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
	"GET / HTTP/1.1\nHost: a\n\n\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\n X: y\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX y\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\n: y\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX: a\tb\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX: \x7f2345678\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX: \xc3\xbc\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
	"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx",
	"GET / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\nx",
	"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000000000000\r\n\r\nx",
	"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, X\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nTrailer: X\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", 101) + "\r\n",
}

func newHead() *head { return &head{header: http.Header{}} }

func TestPlainHeads(t *testing.T) {
	t.Parallel()
	h := newHead()
	for _, s := range plainHeads {
		if !h.parse([]byte(s)[:headSize([]byte(s))]) {
			t.Errorf("%q is not plain", s)
		}
		if err := sameAsTheirs(h, []byte(s)); err != nil {
			t.Error(err)
		}
	}
	for _, s := range oddHeads {
		if h.parse([]byte(s)[:headSize([]byte(s))]) {
			t.Errorf("%q is plain", s)
		}
	}
}

// What is plain is a request to net/http too, with the same words in it and the same
// end.
func FuzzPlainHead(f *testing.F) {
	for _, s := range append(plainHeads, oddHeads...) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n := headSize(data)
		h := newHead()
		if n == 0 || !h.parse(data[:n]) {
			return
		}
		programs.Must(t, sameAsTheirs(h, data))
	})
}

// sameAsTheirs compares a plain head with what net/http reads in the same bytes.
func sameAsTheirs(h *head, data []byte) error {
	n := headSize(data)
	in := bufio.NewReader(bytes.NewReader(append(data[:n:n], strings.Repeat("x", 100)...)))
	theirs, err := http.ReadRequest(in)
	if err != nil {
		return fmt.Errorf("%q: net/http: %w", data, err)
	}
	ours := &http.Request{
		Method: h.method, URL: &h.url, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h.header, ContentLength: h.length, Host: h.host, RequestURI: h.target, Close: h.close,
	}
	if got := fmt.Sprint(theirs.Body == http.NoBody); got != fmt.Sprint(h.length == 0) {
		return fmt.Errorf("%q: a body of %d bytes, and net/http has none: %s", data, h.length, got)
	}
	left, err := io.ReadAll(in)
	if err != nil || len(left) != 100 {
		return fmt.Errorf("%q: net/http ends it %d bytes later (%v)", data, 100-len(left), err)
	}
	theirs.Body = nil
	if len(theirs.TransferEncoding) == 0 && len(theirs.Trailer) == 0 {
		theirs.TransferEncoding, theirs.Trailer = nil, nil
	}
	if !reflect.DeepEqual(ours.Header, theirs.Header) || !reflect.DeepEqual(ours.URL, theirs.URL) {
		return fmt.Errorf("%q: %v %#v, net/http: %v %#v", data, ours.Header, ours.URL, theirs.Header, theirs.URL)
	}
	ours.Header, theirs.Header, ours.URL, theirs.URL = nil, nil, nil, nil
	if a, b := fmt.Sprintf("%+v", ours), fmt.Sprintf("%+v", theirs); a != b {
		return fmt.Errorf("%q:\n%s, net/http:\n%s", data, a, b)
	}
	if !httpguts.ValidHostHeader(h.host) { // as its server asks
		return fmt.Errorf("%q: the host is not one to net/http", data)
	}
	return nil
}

// A head costs one allocation, its text.
func TestPlainHeadAllocates(t *testing.T) {
	raw := []byte("GET /index.html?a=b HTTP/1.1\r\nHost: notes.maya.test\r\nUser-Agent: Mozilla/5.0\r\nAccept: text/html\r\nAccept-Encoding: gzip\r\nCookie: a=b; c=d\r\nConnection: keep-alive\r\n\r\n")
	h := newHead()
	if n := testing.AllocsPerRun(100, func() { h.parse(raw) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPlainHead(b *testing.B) {
	raw := []byte(plainHeads[1])
	h := newHead()
	b.ReportAllocs()
	for b.Loop() {
		h.parse(raw)
	}
}

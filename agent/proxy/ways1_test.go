package proxy_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// probe follows each input: it is answered when the connection was kept and nothing
// that was begun swallows it.
const probe = "GET /probe HTTP/1.1\r\nHost: HOST\r\nCookie: COOKIE\r\nUser-Agent: probe\r\n\r\n"

// exchange1 sends an input in two pieces and a probe after it.
func (w *way) exchange1(addr *net.TCPAddr, pieces ...string) (o came) {
	c, watch := w.dial(addr, "http/1.1")
	defer w.forget(addr)
	defer c.Close()
	stuck := time.AfterFunc(patient, func() { panic(fmt.Sprintf("stuck: %q %+v", pieces, watch)) })
	defer stuck.Stop()
	got, ended := collect(c, watch)
	o.end = "kept"
	for _, piece := range pieces {
		_, _ = io.WriteString(c, piece) // fails on a connection that was ended
		if watch.settled() {
			o.end = "closed"
			break
		}
	}
	_ = c.CloseWrite() // the same
	<-ended
	watch.finished()
	o.app, o.visitor = w.samePort(w.app.take()), w.samePort(answers1(got.Bytes()))
	return o
}

// answers1 reads answers of HTTP/1.1, in a form that does not tell what may differ: the
// order of fields, the date, and how large the chunks are.
func answers1(raw []byte) (all []string) {
	r := bufio.NewReader(bytes.NewReader(raw))
	for {
		head, err := readHead(r)
		if err != nil || len(head) == 0 {
			return append(all, rest(head, r)...)
		}
		fields := slices.DeleteFunc(head[1:], func(f string) bool { return strings.HasPrefix(f, "Date: ") })
		slices.Sort(fields)
		answer := unlike(head[0] + "|" + strings.Join(fields, "|"))
		status := strings.Fields(head[0] + " - -")[1]
		if status[0] == '1' || status == "204" || status == "304" {
			all = append(all, answer)
			continue
		}
		// An answer to HEAD has no body: the next answer follows, as no body here begins.
		if next, _ := r.Peek(7); string(next) == "HTTP/1." || slices.Contains(fields, "Content-Length: 77") { // the app's answer to HEAD
			all = append(all, answer)
			continue
		}
		body, err := readFramed(r, fields, 1)
		if err != nil {
			return append(all, answer+"||cut off")
		}
		all = append(all, answer+"||"+unlike(body))
	}
}

func rest(head []string, r io.Reader) []string {
	more, _ := io.ReadAll(r)
	if len(head) == 0 && len(more) == 0 {
		return nil
	}
	return []string{"rest: " + strings.Join(head, "|") + string(more)}
}

// FuzzWaysHTTP1 sends the same bytes over HTTP/1.1 into both ways. cut is where they
// are sent in two pieces.
func FuzzWaysHTTP1(f *testing.F) {
	w := newWays(f)
	for _, seed := range seeds1 {
		f.Add(seed, uint16(0))
		f.Add(seed, uint16(len(seed)/2))
	}
	for _, seed := range recorded(f, "http1") {
		f.Add(seed, uint16(0))
	}
	for _, seed := range refused {
		f.Add(strings.Replace(seed, "Host: H\r\n", let, 1), uint16(0))
	}
	for i := range outward {
		f.Add(fmt.Sprintf("GET /says%d HTTP/1.1\r\n%s\r\n", i, let), uint16(0))
	}
	for _, address := range ownAddresses {
		f.Add("MOVE / HTTP/1.1\r\n"+let+"Origin: https://HOST\r\nReferer: "+address+"\r\nDestination: "+address+"\r\n\r\n", uint16(0))
	}
	f.Fuzz(func(t *testing.T, input string, cut uint16) {
		if len(input) > 100_000 {
			t.Skip("longer than what is looked at")
		}
		at := min(int(cut), len(input))
		pieces := []string{w.fill.Replace(input[:at]), w.fill.Replace(input[at:]), w.fill.Replace(probe)}
		if at == 0 {
			pieces = pieces[1:]
		}
		if difference := w.compare(func(one *way, addr *net.TCPAddr) came { return one.exchange1(addr, pieces...) }); difference != "" {
			t.Errorf("%q cut at %d: %s", input, at, difference)
		}
	})
}

const let = "Host: HOST\r\nCookie: COOKIE\r\n"

// seeds1 are what browsers and programs send, and what attackers do.
var seeds1 = []string{
	"GET / HTTP/1.1\r\n" + let + "\r\n",
	"GET /a?b=c HTTP/1.1\r\n" + let + "Accept: */*\r\nAccept-Encoding: gzip, deflate, br\r\nUser-Agent: Mozilla/5.0\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: HOST\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: HOST\r\nAccept: text/html\r\nSec-Fetch-Mode: navigate\r\n\r\n",
	"HEAD /x HTTP/1.1\r\n" + let + "\r\n", "HEAD / HTTP/1.1\r\nHost:7\r\n\r\n",
	"OPTIONS * HTTP/1.1\r\n" + let + "\r\n",
	"POST /p HTTP/1.1\r\n" + let + "Content-Length: 5\r\n\r\nhello",
	"POST /p HTTP/1.1\r\n" + let + "Content-Length: 0\r\n\r\n\r\nGET /2 HTTP/1.1\r\n" + let + "\r\n",
	"POST /p HTTP/1.1\r\n" + let + "Transfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n",
	"PUT /p HTTP/1.1\r\n" + let + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
	"GET /1 HTTP/1.1\r\n" + let + "\r\nGET /2 HTTP/1.1\r\n" + let + "\r\nPOST /3 HTTP/1.1\r\n" + let + "Content-Length: 1\r\n\r\nxGET /chunks HTTP/1.1\r\n" + let + "\r\n",
	"GET /none HTTP/1.1\r\n" + let + "\r\nGET /same HTTP/1.1\r\n" + let + "\r\nGET /hints HTTP/1.1\r\n" + let + "\r\nGET /odd HTTP/1.1\r\n" + let + "\r\n",
	"GET /rest HTTP/1.1\r\n" + let + "\r\n", "GET /half HTTP/1.1\r\n" + let + "\r\n", "GET /long HTTP/1.1\r\n" + let + "\r\n",
	"GET / HTTP/1.1\r\n" + let + "Connection: close\r\n\r\n",
	"GET / HTTP/1.1\r\n" + let + "Connection: keep-alive, X-Y\r\nX-Y: 1\r\n\r\n",
	"GET / HTTP/1.0\r\n" + let + "\r\n", "GET / HTTP/1.0\r\n" + let + "Connection: keep-alive\r\n\r\n",
	"GET https://HOST/abs HTTP/1.1\r\n" + let + "\r\n",
	"GET /%zz HTTP/1.1\r\n" + let + "\r\n", "GET //evil.test/x HTTP/1.1\r\n" + let + "\r\n", "GET /a\x00b HTTP/1.1\r\n" + let + "\r\n", "GET /ü HTTP/1.1\r\n" + let + "\r\n",
	"get / HTTP/1.1\r\n" + let + "\r\n", "G(T / HTTP/1.1\r\n" + let + "\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	"GET / HTTP/1.1\r\nhost: HOST\r\ncookie: a=b; COOKIE; c=d\r\nCookie: e=f\r\nx_service_user: me\r\nX-Service-User: me\r\nx-forwarded-for: 1.2.3.4\r\n\r\n",
	"GET / HTTP/1.1\r\n" + let + "Host: other\r\n\r\n", "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n", "GET / HTTP/1.1\r\nHost: HOST:444\r\nCookie: COOKIE\r\n\r\n", "GET / HTTP/1.1\r\nHost: HoSt:443\r\n\r\n",
	"GET / HTTP/1.1\r\n" + let + "Content-Length: 0\r\nContent-Length: 0\r\n\r\n", "GET / HTTP/1.1\r\n" + let + "Content-Length: 3\r\n\r\nabc",
	"POST / HTTP/1.1\r\n" + let + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\n" + let + "Content-Length: +5\r\n\r\nhello", "POST / HTTP/1.1\r\n" + let + "Content-Length: 5\t\r\n\r\nhello", "POST / HTTP/1.1\r\n" + let + "Content-Length:5 \r\n\r\nhello",
	"GET / HTTP/1.1\r\n" + let + "X: a\r\n b\r\n\r\n", "GET / HTTP/1.1\r\n" + let + "X : a\r\n\r\n", "GET / HTTP/1.1\n" + let + "\n", "GET / HTTP/1.1\r\n" + let + "X: \x80\r\n\r\n", "GET / HTTP/1.1\r\n" + let + ": x\r\n\r\n",
	"GET / HTTP/1.1\r\n" + let + "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n", "GET / HTTP/1.1\r\n" + let + "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
	"GET / HTTP/1.1\r\n" + let + "Pragma: no-cache\r\nRange: bytes=0-1\r\nIf-None-Match: \"x\"\r\nTe: trailers\r\n\r\n",
	"GET / HTTP/1.1\r\n" + let + "Origin: https://evil.test\r\nSec-Fetch-Site: cross-site\r\n\r\n", "POST / HTTP/1.1\r\n" + let + "Origin: https://evil.test\r\nContent-Length: 1\r\n\r\nx",
	"OPTIONS / HTTP/1.1\r\nHost: HOST\r\nOrigin: https://a.test\r\nAccess-Control-Request-Method: POST\r\n\r\n",
	"GET /.porchlight/me HTTP/1.1\r\n" + let + "\r\n", "GET /.porchlight/style.css HTTP/1.1\r\nHost: HOST\r\n\r\n", "POST /.porchlight/sign-out HTTP/1.1\r\n" + let + "Content-Length: 3\r\n\r\na=b",
	"GET / HTTP/1.1\r\n" + let + strings.Repeat("X-A: b\r\n", 250) + "\r\n", "GET / HTTP/1.1\r\n" + let + "X: " + strings.Repeat("y", 70_000) + "\r\n\r\n", "GET / HTTP/1.1\r\n" + let + "X: " + strings.Repeat("y", 20_000) + "\r\n\r\n",
	"\r\n\r\nGET / HTTP/1.1\r\n" + let + "\r\n", "GET / HTTP/1.1\r\n" + let + "Authorization: Basic YTpi\r\n\r\n", "GET / HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer x.y.z\r\n\r\n", "",
	"POST / HTTP/1.1\r\nHost: other.test\r\nX:/(\r\nConnection:p\r\nContent-Length:2\r\n\r\n", // whose body the probe begins with
	"CONNECT HOST:443 HTTP/1.1\r\n" + let + "\r\n", "TRACE / HTTP/1.1\r\n" + let + "\r\n", "DELETE /x HTTP/1.1\r\n" + let + "\r\n",
}

package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// readSize is what is read at once, in bytes.
const readSize = readBuffer

// plainSeeds are answers that are plain, those that nearly are, and those in which two
// readers could find different things.
var plainSeeds = []string{
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\nKeep-Alive: 5\r\n\r\nok and more",
	"HTTP/1.1 200\r\ncontent-length:2\t\r\nset-cookie: a\r\nSet-Cookie:b\r\nX:\r\n\r\nok",
	"HTTP/1.1 200 \xff\r\nX-Long: \t\xe4 b \r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0\r\nX-Late: 1\r\nX-Late: 2\r\n\r\nx",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Late",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX Late: 1\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n" + strings.Repeat("x", readSize),
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokay",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok", "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\n Content-Length: 2\r\n\r\nok", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", "HTTP/1.1 200 OK\r\nX: a\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nX: a\rContent-Length: 2\r\n\r\nok", "HTTP/1.1 200 OK\r\nX: \x00\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 304 Not\r\nEtag: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
	"HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nPragma: no-cache\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTrailer: X\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: 1\r\n\r\n",
	"HTTP/1.1 200 OK\r\nConnection: keep-alive, close\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1  200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 O\rK\r\nContent-Length: 0\r\n\r\n",
}

// readWhole is an answer as read by one of two readers: its head, its body, how that
// ended, and what follows it.
func readWhole(res *http.Response, r *bufio.Reader) string {
	body, err := io.ReadAll(res.Body)
	rest, _ := io.ReadAll(r)
	return fmt.Sprintf("%d %q %d %v\n%q %v %q\n%q", res.StatusCode, res.Header, res.ContentLength, res.Close, body, err, res.Trailer, rest)
}

// sameReading says how the answer is read here where it is plain; any that is must be
// read by net/http in the same way.
func sameReading(t *testing.T, method, answer string) (plain bool) {
	t.Helper()
	request := &http.Request{Method: method}
	conn := &appConn{r: bufio.NewReaderSize(strings.NewReader(answer), readSize)}
	conn.r.Peek(1)
	if !conn.readPlain(http.Header{}, request) {
		if there := conn.r.Buffered(); there < min(len(answer), readSize) {
			t.Fatalf("%s %q is not plain, and %d bytes of it are left", method, answer, there)
		}
		return false
	}
	ours := readWhole(&conn.res, conn.r)
	other := bufio.NewReaderSize(strings.NewReader(answer), readSize)
	res, err := http.ReadResponse(other, request)
	if err != nil {
		t.Fatalf("%s %q: %v, and here %s", method, answer, err, ours)
	}
	removeHopByHop(res.Header)
	if theirs := readWhole(res, other); ours != theirs {
		t.Fatalf("%s %q is\n%s\nto net/http\n%s", method, answer, ours, theirs)
	}
	return true
}

// What is read here is what net/http reads; and the common answers are.
func TestPlainAnswersReadAlike(t *testing.T) {
	t.Parallel()
	plain := 0
	for _, answer := range plainSeeds {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			if sameReading(t, method, answer) {
				plain++
			}
		}
	}
	const least = 24 // of all seeds and methods
	if plain < least {
		t.Errorf("only %d are read here", plain)
	}
}

func FuzzPlainAnswer(f *testing.F) {
	for _, answer := range plainSeeds {
		f.Add(answer)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		for _, method := range []string{"GET", "HEAD"} {
			sameReading(t, method, answer)
		}
	})
}

package gate

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Where one request ends and the next begins, on one connection: what the
// scanner takes, net/http reads in the same pieces or refuses. However the bytes
// arrive, the verdict is the same.
func FuzzMessages(f *testing.F) {
	for _, s := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"\r\nGET / HTTP/1.0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\nT: v\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"GET / HTTP/1.1\nHost: a\n\n",
		"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 00\r\n\r\n",
		"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length : 1\r\n\r\nx",
		"GET " + strings.Repeat("/long", 50) + " HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("N", 70) + ": v\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var whole, single messages
		good := whole.scan(data)
		var ends []int
		for i := range data {
			busy := single.state != betweenMessages
			if single.scan(data[i:i+1]) == 0 {
				if i != good {
					t.Fatalf("byte by byte %d are good, at once %d", i, good)
				}
				break
			}
			if busy && single.state == betweenMessages {
				ends = append(ends, i+1)
			}
		}
		in := bytes.NewReader(data[:good])
		buffered := bufio.NewReaderSize(in, 4096)
		var theirs []int
		for len(theirs) < len(ends) {
			// Empty lines before a request are skipped by one and refused by
			// the other.
			for next, err := buffered.Peek(2); err == nil && string(next) == "\r\n"; next, err = buffered.Peek(2) {
				buffered.Discard(2)
			}
			req, err := http.ReadRequest(buffered)
			if err != nil {
				break
			}
			if req.Method == "PRI" && len(req.Header) == 0 && req.URL.Path == "*" && req.Proto == "HTTP/2.0" {
				break // begins HTTP/2, which the server refuses here
			}
			if _, err := io.Copy(io.Discard, req.Body); err != nil {
				break
			}
			theirs = append(theirs, good-in.Len()-buffered.Buffered())
		}
		if !slices.Equal(theirs, ends[:len(theirs)]) {
			t.Fatalf("%q ends at %v here and at %v for net/http", data, ends, theirs)
		}
	})
}

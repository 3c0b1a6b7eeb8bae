package relay

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"porchlight/test/programs"
)

// largeHead begins a request whose head is larger than most and does not end it.
func largeHead(t *testing.T, addr, protocol string) *tls.Conn {
	t.Helper()
	conn := dialAuth(t, addr, protocol)
	var err error
	if protocol == "http/1.1" {
		_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+testAuthHost+"\r\nCookie: "+strings.Repeat("x", 8<<10)+"\r\n")
	} else {
		// One byte for each of many fields.
		var block bytes.Buffer
		encode := hpack.NewEncoder(&block)
		for range 8 << 10 {
			_ = encode.WriteField(hpack.HeaderField{Name: "cookie", Value: "x"})
		}
		frames := http2.NewFramer(conn, conn)
		_, err = io.WriteString(conn, http2.ClientPreface)
		err = errors.Join(err, frames.WriteSettings(),
			frames.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: true}))
	}
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func atHeads(r *Relay) int {
	r.heads.mu.Lock()
	defer r.heads.mu.Unlock()
	return r.heads.newcomers.Len()
}

// Weakness: each connection to the auth host may hold a head of a megabyte that
// does not end, so a thousand of one address held a gigabyte. Checked: there are
// few places for large heads, whoever comes last has one, and a request leaves it.
func TestLargeHeadsShareFewPlaces(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"http/1.1", "h2"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			r, addr := serveRelay(t, nil, nil)
			var held []*tls.Conn
			for i := range largeHeadsPerSource {
				held = append(held, largeHead(t, addr, protocol))
				programs.Eventually(t, "a large head has a place", func() bool { return atHeads(r) == i+1 })
			}
			largeHead(t, addr, protocol)
			if _, err := io.Copy(io.Discard, held[0]); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the oldest of one address too many was kept")
			}
			programs.Eventually(t, "one is counted", func() bool { return r.Stats().LimitedBy["large-heads"] == 1 })

			// One who ends its head in time has its answer, and its place is free.
			if protocol == "http/1.1" {
				last := held[len(held)-1]
				_, _ = io.WriteString(last, "\r\n")
				answer, err := http.ReadResponse(bufio.NewReader(last), nil)
				if err != nil || answer.StatusCode != http.StatusNotFound {
					t.Fatalf("a whole head was answered with %v, %v", answer, err)
				}
				programs.Eventually(t, "its place is free", func() bool { return atHeads(r) == largeHeadsPerSource-1 })
			}
			for _, conn := range held {
				_ = conn.Close()
			}
			programs.Eventually(t, "the places are free", func() bool { return atHeads(r) <= 1 })
		})
	}
}

// Bodies are no heads: what a request sends after its head takes no place.
func TestBodiesTakeNoPlaceForHeads(t *testing.T) {
	t.Parallel()
	read := make(chan int64)
	r, addr := serveRelay(t, func(c *Config) {
		c.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			n, _ := io.CopyN(io.Discard, r.Body, 64<<10)
			read <- n
			n, _ = io.Copy(io.Discard, r.Body)
			read <- n
		})
	}, nil)
	for _, h2 := range []bool{false, true} {
		transport := &http.Transport{ForceAttemptHTTP2: h2, TLSClientConfig: &tls.Config{ServerName: testAuthHost, InsecureSkipVerify: true}}
		t.Cleanup(transport.CloseIdleConnections)
		body, more := io.Pipe()
		go func() {
			resp, err := transport.RoundTrip(mustRequest(addr, body))
			if err == nil {
				_ = resp.Body.Close()
			}
		}()
		_, _ = more.Write(make([]byte, 64<<10))
		if n := <-read; n != 64<<10 {
			t.Fatalf("%d bytes came", n)
		}
		if n := atHeads(r); n != 0 {
			t.Errorf("HTTP/2 %v: a body that was read holds %d places", h2, n)
		}
		_ = more.Close()
		<-read
	}
}

func mustRequest(addr string, body io.Reader) *http.Request {
	req, err := http.NewRequest(http.MethodPost, "https://"+addr+"/", body)
	if err != nil {
		panic(err)
	}
	return req
}
